"""Support vector machines (domain ai.onnx.ml), which have libsvm's parameters.

Source: C.-C. Chang and C.-J. Lin, LIBSVM: a library for support vector machines, ACM TIST 2(3),
2011, sections 5 and 8; for what ONNX leaves open, onnxruntime.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.linear_models import (
    chosen_label,
    linear_scores,
    post_transformed,
)
from tensorplug_onnx.operators.ml import DOMAIN, labelled
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_onnx.executing import Scope
    from tensorplug_onnx.graph import Node
    from tensorplug_onnx.values import Host

_LEAST: Final = 1e-7  # a probability of one class against another
_SWEEPS: Final = 100
_TOLERANCE: Final = 0.005  # for each class: that of libsvm


@rule("SVMRegressor", domain=DOMAIN)
def regress_by_vectors(
    x: Any,
    *,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (0.0, 0.0, 0.0),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
) -> Any:
    """Without support vectors, the coefficients are those of the features."""
    x = tp.astype(x, tp.float32)
    if n_supports:
        vectors = np.array(support_vectors, np.float32).reshape(n_supports, -1)
        features = _kernel(x, vectors, kernel_type, *kernel_params)
    else:
        features = x
    scores = linear_scores(features, coefficients, rho[:1], 1)
    if one_class:
        return tp.where(scores > 0, tp.ones_like(scores), -tp.ones_like(scores))
    return post_transformed(scores, post_transform)


def _kernel(
    x: Any, vectors: Any, kind: str, gamma: float, coefficient: float, degree: float
) -> Any:
    """Return the kernel of each example with each support vector: [N,S]."""
    if kind == "RBF":
        apart = x[:, None, :] - tp.asarray(vectors)
        return tp.exp(-gamma * tp.sum(apart * apart, axis=-1))
    products = x @ tp.asarray(vectors.T.copy())
    if kind == "LINEAR":
        return products
    if kind == "POLY":
        return (gamma * products + coefficient) ** degree
    if kind == "SIGMOID":
        return tp.tanh(gamma * products + coefficient)
    raise ValueError(f"kernel_type {kind!r} is unknown")


@dataclass(frozen=True, slots=True)
class _Machine:
    """The machines of all pairs of classes, in libsvm's order: (0,1), (0,2), ..., (1,2), ...

    ``vectors``: [S,F], class by class. ``coefficients``: of each pair, 0 for the vectors of other
    classes: [S,P]. ``rho``: [P]. ``winners``: [2,P,K], 1 for the class of each pair that a
    positive score votes for, and for the one that another score does.
    """

    vectors: Host
    coefficients: Host
    rho: Host
    winners: Host


def _machine(
    coefficients: Sequence[float],
    rho: Sequence[float],
    support_vectors: Sequence[float],
    sizes: Sequence[int],
) -> _Machine:
    """Return what the attributes of a node say.

    A vector of class c has one coefficient for each other class, in the order of the classes.
    """
    classes, count = len(sizes), sum(sizes)
    pairs = list(itertools.combinations(range(classes), 2))
    if len(rho) != len(pairs):
        raise ValueError(f"{classes} classes are {len(pairs)} pairs, got {len(rho)} in 'rho'")
    given = np.array(coefficients, np.float32).reshape(classes - 1, count)
    owner = np.repeat(np.arange(classes), sizes)
    of_pairs = np.zeros((count, len(pairs)), np.float32)
    winners = np.zeros((2, len(pairs), classes), np.float32)
    for at, (first, second) in enumerate(pairs):
        of_pairs[owner == first, at] = given[second - 1, owner == first]
        of_pairs[owner == second, at] = given[first, owner == second]
        winners[0, at, first] = winners[1, at, second] = 1
    return _Machine(
        np.array(support_vectors, np.float32).reshape(count, -1),
        of_pairs,
        np.array(rho, np.float32),
        winners,
    )


@rule("SVMClassifier", domain=DOMAIN)
def classify_by_vectors(
    x: Any,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] = (0.0, 0.0, 0.0),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    rho: Sequence[float] = (),
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
    node: Node,
    scope: Scope,
) -> Any:
    """The label has most votes of the pairs of classes, the first one of equals.

    The scores are those of the pairs, without probabilities; a single one comes with its negative
    in front. Without support vectors, the coefficients are those of the features.
    """
    labels = labelled(classlabels_ints, classlabels_strings)
    x = tp.astype(tp.reshape(x, (1, -1)) if x.ndim == 1 else x, tp.float32)
    if not vectors_per_class:
        if len(labels) < 2:
            raise UnsupportedError("SVMClassifier of one class without support vectors")
        scores = linear_scores(x, coefficients, rho[:1], len(labels))
        best = tp.argmax(scores, axis=-1)
        return chosen_label(best, labels), post_transformed(scores, post_transform)
    if len(vectors_per_class) != len(labels):
        raise ValueError(f"{len(labels)} labels, {len(vectors_per_class)} in 'vectors_per_class'")
    machine: _Machine = scope.plans.once(
        node, "", lambda: _machine(coefficients, rho, support_vectors, vectors_per_class)
    )
    kernel = _kernel(x, machine.vectors, kernel_type, *kernel_params)
    scores = kernel @ tp.asarray(machine.coefficients) + tp.asarray(machine.rho)
    first = tp.astype(scores > 0, tp.float32)
    winners = tp.asarray(machine.winners)
    votes = first @ winners[0] + (1 - first) @ winners[1]
    label = chosen_label(tp.argmax(votes, axis=-1), labels)
    if prob_a:
        scores = _probabilities(scores, prob_a, prob_b, len(labels))
    elif scores.shape[-1] == 1:
        if post_transform == "PROBIT":
            raise UnsupportedError("SVMClassifier: PROBIT of one score for two classes")
        scores = tp.concat([-scores, scores], axis=-1)
    return label, post_transformed(scores, post_transform)


def _probabilities(
    scores: Any, slopes: Sequence[float], offsets: Sequence[float], classes: int
) -> Any:
    """Return the probability of each class: [N,K].

    Of a pair, they are a sigmoid of its score (Platt). Those of the pairs are coupled by the
    second method of Wu, Lin and Weng (Probability estimates for multi-class classification by
    pairwise coupling, JMLR 5, 2004, algorithm 2), which ends within libsvm's tolerance.
    """
    if not len(slopes) == len(offsets) == scores.shape[-1]:
        raise ValueError(
            f"{scores.shape[-1]} pairs of classes, {len(slopes)} in 'prob_a' and {len(offsets)} "
            "in 'prob_b'"
        )
    a, b = (tp.asarray(np.array(one, np.float32)) for one in (slopes, offsets))
    of_pairs = tp.clip(tp.nn.sigmoid(-(a * scores + b)), _LEAST, 1 - _LEAST)
    columns: list[list[Any]] = [[tp.zeros_like(of_pairs[:, 0])] * classes for _ in range(classes)]
    for at, (first, second) in enumerate(itertools.combinations(range(classes), 2)):
        columns[first][second] = of_pairs[:, at]
        columns[second][first] = 1 - of_pairs[:, at]
    r = tp.stack([tp.stack(row, axis=-1) for row in columns], axis=1)  # of the row's class
    r_t = tp.swapaxes(r, 1, 2)
    diagonal = tp.asarray(np.eye(classes, dtype=np.float32))
    q = diagonal * tp.sum(r_t * r_t, axis=-1)[:, :, None] - r * r_t
    start = tp.full_like(q[:, :, 0], 1 / classes)
    limit = max(_SWEEPS, classes)

    def unfinished(p: Any) -> Any:
        products = tp.sum(q * p[:, None, :], axis=-1)
        apart = tp.abs(products - tp.sum(p * products, axis=-1, keepdims=True))
        return tp.max(apart, axis=-1, keepdims=True) >= _TOLERANCE / classes

    def goes_on(state: Any) -> Any:
        return tp.any(unfinished(state[0]))

    def advance(state: Any) -> Any:
        (p,) = state
        return (tp.where(unfinished(p), _swept(p, q), p),)

    (found,) = tp.while_loop(goes_on, advance, (start,), limit)
    return found


def _swept(p: Any, q: Any) -> Any:
    """Return the probabilities after a step along each axis, each followed by a scaling."""
    products = tp.sum(q * p[:, None, :], axis=-1)
    value = tp.sum(p * products, axis=-1, keepdims=True)
    for at in range(q.shape[-1]):
        own, of_axis = products[:, at : at + 1], q[:, at, :]
        curvature = of_axis[:, at : at + 1]
        step = (value - own) / curvature
        whole = 1 + step
        value = (value + step * (step * curvature + 2 * own)) / (whole * whole)
        products = (products + step * of_axis) / whole
        unit = tp.asarray(np.eye(1, q.shape[-1], at, dtype=np.float32))
        p = (p + step * unit) / whole
    return p
