"""Ensembles of decision trees (domain ai.onnx.ml).

All examples walk down all trees at once: each step takes, for every example and tree, the node's
feature and threshold, and goes on to one of its two children. Leaves are their own children.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.linear_models import chosen_label, post_transformed
from tensorplug_onnx.operators.ml import DOMAIN, labelled
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_onnx.values import Host

_COMPARISONS: Final = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
_MEMBER: Final = _COMPARISONS.index("MEMBER")
_LEAF: Final = -1
_AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class Forest:
    """Trees whose nodes are numbered through.

    ``modes``: which comparison leads to ``when_true``; -1 for leaves. ``members``: for each node
    the values that it tests for, NaN where there are no more. ``weights``: what a leaf adds to
    each target; ``votes``: whether it adds to it.
    """

    features: Host
    thresholds: Host
    modes: Host
    when_true: Host
    when_false: Host
    missing_is_true: Host
    members: Host | None
    roots: Host
    weights: Host
    votes: Host

    def depth(self) -> int:
        """Return the number of steps from the roots to the deepest leaf.

        Raises:
            ValueError: a child does not exist, or a node is its own descendant.

        """
        inner = self.modes != _LEAF
        for children in (self.when_true, self.when_false, self.roots):
            if children.size and not 0 <= children.min() <= children.max() < len(self.modes):
                raise ValueError(f"a tree refers to a node that is not one of {len(self.modes)}")
        now, steps = np.unique(self.roots), 0
        while inner[now].any():
            if steps == len(self.modes):
                raise ValueError("a node of a tree is its own descendant")
            now = np.unique(np.concatenate([self.when_true[now], self.when_false[now]]))
            steps += 1
        return steps

    def leaves(self, x: Any) -> Any:
        """Return which leaf of each tree each example reaches: int64[N,T]."""
        rows = int(x.shape[0])
        at = tp.asarray(np.broadcast_to(self.roots, (rows, len(self.roots))).copy())
        taken = {name: tp.asarray(getattr(self, name)) for name in (
            "features", "thresholds", "modes", "when_true", "when_false", "missing_is_true",
        )}  # fmt: skip
        members = None if self.members is None else tp.asarray(self.members)
        present = sorted(set(self.modes.tolist()) - {_LEAF})
        for _ in range(self.depth()):
            found = tp.take_along_axis(x, _taken(taken["features"], at), axis=1)
            threshold, mode = _taken(taken["thresholds"], at), _taken(taken["modes"], at)
            holds = tp.logical_and(tp.isnan(found), _taken(taken["missing_is_true"], at))
            for code in present:
                if code == _MEMBER:
                    assert members is not None  # checked where they are read
                    own = tp.reshape(tp.take(members, tp.reshape(at, (-1,)), axis=0),
                                     (*at.shape, -1))  # fmt: skip
                    here = tp.any(own == found[..., None], axis=-1)
                else:
                    here = _compared(code, found, threshold)
                holds = tp.logical_or(holds, tp.logical_and(mode == code, here))
            at = tp.where(holds, _taken(taken["when_true"], at), _taken(taken["when_false"], at))
        return at

    def scores(self, x: Any, aggregate: str, base: Host) -> Any:
        """Return the sum, mean, minimum or maximum of the votes for each target: [N,targets]."""
        at = self.leaves(x)
        shape = (*at.shape, self.weights.shape[1])
        flat = tp.reshape(at, (-1,))
        weights = tp.reshape(tp.take(tp.asarray(self.weights), flat, axis=0), shape)
        if aggregate in ("SUM", "AVERAGE"):
            total = tp.sum(weights, axis=1)
            found = total / len(self.roots) if aggregate == "AVERAGE" else total
        else:
            votes = tp.reshape(tp.take(tp.asarray(self.votes), flat, axis=0), shape)
            sign = 1 if aggregate == "MAX" else -1
            lowest = tp.full_like(weights, -np.inf)
            most = sign * tp.max(tp.where(votes, sign * weights, lowest), axis=1)
            found = tp.where(tp.any(votes, axis=1), most, tp.zeros_like(most))
        return found + tp.asarray(base) if base.size else found


def _taken(values: Any, at: Any) -> Any:
    return tp.reshape(tp.take(values, tp.reshape(at, (-1,)), axis=0), at.shape)


def _compared(code: int, x: Any, threshold: Any) -> Any:
    names = ("less_equal", "less", "greater_equal", "greater", "equal", "not_equal")
    return getattr(tp, names[code])(x, threshold)


def _old_forest(nodes: dict[str, Any], votes: dict[str, Any], targets: int, dtype: Any) -> Forest:
    """Return the trees of TreeEnsembleClassifier and TreeEnsembleRegressor."""
    trees, ids = nodes["treeids"], nodes["nodeids"]
    count = len(ids)
    places = {key: at for at, key in enumerate(zip(trees, ids, strict=True))}
    if len(places) != count:
        raise ValueError("two nodes of a tree have the same number")
    modes = [
        _LEAF if mode == "LEAF" else _COMPARISONS.index(mode.removeprefix("BRANCH_"))
        for mode in nodes["modes"]
    ]
    children = [
        [
            at if mode == _LEAF else places.get((tree, child), -1)
            for at, (mode, tree, child) in enumerate(zip(modes, trees, nodes[name], strict=True))
        ]
        for name in ("truenodeids", "falsenodeids")
    ]
    weights = np.zeros((count, targets), dtype)
    voted = np.zeros((count, targets), np.bool)
    for tree, node, target, weight in zip(
        votes["treeids"], votes["nodeids"], votes["ids"], votes["weights"], strict=True
    ):
        at = places[tree, node]
        weights[at, target] += weight
        voted[at, target] = True
    named = {child for side in children for at, child in enumerate(side) if child != at}
    first = {tree: at for (tree, _), at in reversed(places.items()) if at not in named}
    missing = nodes["missing"] or (0,) * count
    return Forest(
        np.array(nodes["featureids"], np.int64),
        np.array(nodes["values"], dtype),
        np.array(modes, np.int64),
        np.array(children[0], np.int64),
        np.array(children[1], np.int64),
        np.array(missing, np.bool),
        None,
        np.array([first[tree] for tree in dict.fromkeys(trees)], np.int64),
        weights,
        voted,
    )


def _model_of(kind: str, attributes: dict[str, Any], x: Any, targets: int) -> tuple[Forest, Host]:
    """Return the trees and the base values of a node; ``kind``: the prefix of its votes."""
    dtype = np.dtype(np.float64 if "64" in str(x.dtype) else np.float32)
    plans, node = attributes["scope"].plans, attributes["node"]
    found: tuple[Forest, Host] = plans.once(
        node, dtype.name, lambda: _read_model(kind, attributes, dtype, targets)
    )
    return found


def _read_model(
    kind: str, attributes: dict[str, Any], dtype: Any, targets: int
) -> tuple[Forest, Host]:

    def values(name: str) -> Any:
        """Return numbers that may come as a tensor, for the sake of float64."""
        tensor = attributes[f"{name}_as_tensor"]
        return attributes[name] if tensor is None else tensor

    nodes = {
        name: attributes[f"nodes_{name}"]
        for name in ("treeids", "nodeids", "modes", "truenodeids", "falsenodeids", "featureids")
    }
    nodes |= {
        "values": values("nodes_values"),
        "missing": attributes["nodes_missing_value_tracks_true"],
    }
    votes = {name: attributes[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")}
    votes["weights"] = values(f"{kind}_weights")
    return _old_forest(nodes, votes, targets, dtype), np.array(values("base_values"), dtype)


def _with_keywords(names: Sequence[str], **defaults: Any) -> Callable[..., Any]:
    """Give a function that takes all attributes as one dict a signature that lists them."""
    empty: dict[str, Any] = {name: None if name.endswith("_as_tensor") else () for name in names}
    empty |= {**defaults, "node": None, "scope": None}

    def decorated(function: Callable[[Any, dict[str, Any]], Any]) -> Callable[..., Any]:
        def called(x: Any, **attributes: Any) -> Any:
            return function(x, {**empty, **attributes})

        parameters = [inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in empty.items()
        ]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return called

    return decorated


_NODES: Final = (
    "base_values", "base_values_as_tensor", "nodes_falsenodeids", "nodes_featureids",
    "nodes_hitrates", "nodes_hitrates_as_tensor", "nodes_missing_value_tracks_true",
    "nodes_modes", "nodes_nodeids", "nodes_treeids", "nodes_truenodeids", "nodes_values",
    "nodes_values_as_tensor",
)  # fmt: skip
_VOTES: Final = ("ids", "nodeids", "treeids", "weights", "weights_as_tensor")


@rule("TreeEnsembleRegressor", domain=DOMAIN)
@_with_keywords(
    (*_NODES, *(f"target_{name}" for name in _VOTES)),
    aggregate_function="SUM", n_targets=1, post_transform="NONE",
)  # fmt: skip
def regress(x: Any, attributes: dict[str, Any]) -> Any:
    x = x if "float" in str(x.dtype) else tp.astype(x, tp.float32)
    forest, base = _model_of("target", attributes, x, attributes["n_targets"])
    scores = forest.scores(x, attributes["aggregate_function"], base)
    return post_transformed(tp.astype(scores, tp.float32), attributes["post_transform"])


@rule("TreeEnsembleClassifier", domain=DOMAIN)
@_with_keywords(
    (*_NODES, *(f"class_{name}" for name in _VOTES), "classlabels_int64s", "classlabels_strings"),
    post_transform="NONE",
)
def classify(x: Any, attributes: dict[str, Any]) -> Any:
    """The specification leaves open what one score for two classes means: as in onnxruntime."""
    x = x if "float" in str(x.dtype) else tp.astype(x, tp.float32)
    labels = labelled(attributes["classlabels_int64s"], attributes["classlabels_strings"])
    forest, base = _model_of("class", attributes, x, len(labels))
    transform = attributes["post_transform"]
    voted = sorted(set(attributes["class_ids"]))
    if len(labels) == 2 and len(voted) == 1:
        if base.size > 1 or (base.size and voted != [0]):
            raise UnsupportedError("TreeEnsembleClassifier: base_values and votes for one class")
        score = forest.scores(x, "SUM", base)[:, voted[0] : voted[0] + 1]
        positive = bool((forest.weights >= 0).all())
        label = tp.astype(tp.reshape(score > (0.5 if positive else 0), (-1,)), tp.int64)
        if positive:
            both = tp.concat([1 - score, score], axis=-1)
        else:
            both = tp.concat([-score, score], axis=-1)
            both = tp.nn.sigmoid(both) if transform == "LOGISTIC" else both
        return chosen_label(label, labels), tp.astype(both, tp.float32)
    if base.size not in (0, len(labels)):
        raise ValueError(f"{len(labels)} classes have {base.size} base_values")
    scores = forest.scores(x, "SUM", base)
    best = tp.argmax(scores, axis=-1)
    found = post_transformed(tp.astype(scores, tp.float32), transform)
    return chosen_label(best, labels), found


@rule("TreeEnsemble", domain=DOMAIN, since=5)
@_with_keywords(
    (
        "leaf_targetids", "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids",
        "nodes_hitrates", "nodes_missing_value_tracks_true", "nodes_trueleafs",
        "nodes_truenodeids", "tree_roots",
    ),
    aggregate_function=1, n_targets=1, post_transform=0,
    leaf_weights=None, membership_values=None, nodes_modes=None, nodes_splits=None,
)  # fmt: skip
def ensemble(x: Any, attributes: dict[str, Any]) -> Any:
    plans, node = attributes["scope"].plans, attributes["node"]
    forest: Forest = plans.once(node, "", lambda: _read_ensemble(attributes))
    aggregate = _AGGREGATES[attributes["aggregate_function"]]
    scores = forest.scores(x, aggregate, np.zeros(0, forest.weights.dtype))
    return post_transformed(scores, _TRANSFORMS[attributes["post_transform"]])


def _read_ensemble(attributes: dict[str, Any]) -> Forest:
    """Return the trees of TreeEnsemble; the leaves are numbered behind the nodes.

    A tree may be a leaf alone: then both sides of its root are that leaf.
    """
    modes, weights_of_leaves = attributes["nodes_modes"], attributes["leaf_weights"]
    targets = np.array(attributes["leaf_targetids"], np.int64)
    inner, leaves = len(modes), len(targets)
    own = inner + np.arange(leaves)

    def side(name: str) -> Host:
        ids = np.array(attributes[f"nodes_{name}nodeids"], np.int64)
        is_leaf = np.array(attributes[f"nodes_{name}leafs"], np.int64)
        return np.concatenate([ids + inner * is_leaf, own])

    weights = np.zeros((inner + leaves, attributes["n_targets"]), weights_of_leaves.dtype)
    voted = np.zeros(weights.shape, np.bool)
    weights[own, targets] = weights_of_leaves
    voted[own, targets] = True
    missing = attributes["nodes_missing_value_tracks_true"] or (0,) * inner
    padding = (0, leaves)
    return Forest(
        np.pad(np.array(attributes["nodes_featureids"], np.int64), padding),
        np.pad(attributes["nodes_splits"], padding),
        np.pad(modes.astype(np.int64), padding, constant_values=_LEAF),
        side("true"),
        side("false"),
        np.pad(np.array(missing, np.bool), padding),
        _members(modes, attributes["membership_values"], inner + leaves),
        np.array(attributes["tree_roots"], np.int64),
        weights,
        voted,
    )


def _members(modes: Host, values: Host | None, rows: int) -> Host | None:
    """Return a row of values for each node that tests for members; NaN ends its list."""
    testing = np.flatnonzero(modes == _MEMBER)
    if not len(testing):
        return None
    given = np.zeros(0, np.float32) if values is None else values
    ends = np.flatnonzero(np.isnan(given))
    if len(ends) != len(testing):
        raise ValueError(f"{len(testing)} nodes test for members, {len(ends)} lists are given")
    begins = [0, *(ends[:-1] + 1)]
    found = np.full((rows, int(max(ends - begins, default=0)) or 1), np.nan, given.dtype)
    for node, begin, end in zip(testing, begins, ends, strict=True):
        found[node, : end - begin] = given[begin:end]
    return found
