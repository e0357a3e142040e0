"""Traditional machine learning: against formulas, and trees that are walked one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import NodeError, UnsupportedError

X = np.array([[1.0, -2.0, 0.5], [3.0, 4.0, -1.0], [0.0, 0.0, 0.0]], np.float32)
NAN = float("nan")


def load(op_type, x, outputs=("y",), version=1, **attributes):
    node = helper.make_node(op_type, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(object) if x.dtype.kind in "UT" else x.dtype)
    graph = helper.make_graph(
        [node], "graph", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", version)]
    return tensorplug_onnx.load(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def run(op_type, x, outputs=("y",), version=1, *, compiled=False, **attributes):
    model = load(op_type, x, outputs, version, **attributes)
    found = (model.compile() if compiled else model)(x)
    return [found[name].numpy() for name in outputs]


def same(found, expected, rtol=1e-6):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    if found.dtype.kind == "T":
        assert found.tolist() == expected.tolist()
        return
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-7)


F, D, N = np.float32, np.float64, np.int64
FEATURES = {
    "Binarizer": (X, {"threshold": 0.5}, (X > 0.5).astype(F)),
    "Binarizer of integers": (np.array([1, 2, 3]), {"threshold": 2.0}, np.array([0, 0, 1])),
    "Scaler": (X, {"offset": [1.0, 2, 3], "scale": [2.0, 3, 4]}, (X - [1, 2, 3]) * F([2, 3, 4])),
    "Scaler of integers": (np.array([[1, 2]]), {"offset": [1.0], "scale": [0.5]}, F([[0, 0.5]])),
    "Normalizer max": (X[:2], {"norm": "MAX"}, X[:2] / F([[1], [4]])),
    "Normalizer 1": (X, {"norm": "L1"}, X / F([[3.5], [8], [1]])),
    "Normalizer 2": (X, {"norm": "L2"}, X / F([[math.sqrt(5.25)], [math.sqrt(26)], [1]])),
    "Imputer": (
        np.array([[1, NAN], [NAN, 2]], F),
        {"imputed_value_floats": [7.0, 8.0], "replaced_value_float": NAN}, F([[1, 8], [7, 2]]),
    ),
    "Imputer of one value": (
        np.array([[1, 5], [5, 2]]), {"imputed_value_int64s": [9], "replaced_value_int64": 5},
        np.array([[1, 9], [9, 2]]),
    ),
    "OneHotEncoder": (
        np.array([3, 1, 2]), {"cats_int64s": [1, 3]}, F([[0, 1], [1, 0], [0, 0]]),
    ),
    "OneHotEncoder of text": (
        np.array([["a"], ["c"]]), {"cats_strings": ["a", "b"]}, F([[[1, 0]], [[0, 0]]]),
    ),
    "OneHotEncoder of floats": (F([1.9]), {"cats_int64s": [1, 2]}, F([[1, 0]])),
    "FeatureVectorizer": (np.array([1, 2]), {"inputdimensions": [2]}, F([[1, 2]])),
    "CategoryMapper": (
        np.array(["b", "z"]), {"cats_int64s": [5, 6], "cats_strings": ["a", "b"]}, N([6, -1]),
    ),
    "CategoryMapper back": (
        np.array([6, 9]), {"cats_int64s": [5, 6], "cats_strings": ["a", "b"]},
        np.array(["b", "_Unused"]),
    ),
    "LinearRegressor": (
        X, {"coefficients": [1.0, 2, 3, 4, 5, 6], "intercepts": [7.0, 8], "targets": 2},
        X @ F([[1, 4], [2, 5], [3, 6]]) + F([7, 8]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("case", FEATURES)
def test_features(case, compiled):
    x, attributes, expected = FEATURES[case]
    if compiled and "U" in (x.dtype.kind, np.asarray(expected).dtype.kind):
        pytest.skip("text is on the host")
    (found,) = run(case.split()[0], x, compiled=compiled, **attributes)
    same(found, np.asarray(expected).astype(found.dtype) if found.dtype == F else expected)


def test_one_hot_of_an_unknown_category():
    with pytest.raises(NodeError, match="no category"):
        run("OneHotEncoder", np.array([3]), cats_int64s=[1], zeros=0)


ENCODED = {
    "integers": (
        2, np.array([3, 1, 9]), {"keys_int64s": [1, 3], "values_int64s": [5, 6]}, N([6, 5, -1]),
    ),
    "last of equal keys": (
        4, np.array([1]), {"keys_int64s": [1, 1], "values_int64s": [5, 6]}, N([6]),
    ),
    "integers to text": (
        2, np.array([[3], [7]]),
        {"keys_int64s": [1, 3], "values_strings": ["a", "b"], "default_string": "?"},
        np.array([["b"], ["?"]]),
    ),
    "text to floats": (
        2, np.array(["b", "?"]),
        {"keys_strings": ["a", "b"], "values_floats": [0.5, 1.5], "default_float": -2.5},
        F([1.5, -2.5]),
    ),
    "floats with NaN": (
        4, F([NAN, 0.5, 2]),
        {"keys_floats": [0.5, NAN], "values_floats": [1.5, 2.5], "default_float": 9.0},
        F([2.5, 1.5, 9]),
    ),
    "NaN alone": (
        4, F([NAN, 0.5]), {"keys_floats": [NAN], "values_int64s": [4]}, N([4, -1]),
    ),
    "NaN to text": (
        4, F([NAN, 0.5]), {"keys_floats": [NAN], "values_strings": ["none"]},
        np.array(["none", "_Unused"]),
    ),
    "tensors": (
        4, np.array([2, 5], D),
        {
            "keys_tensor": numpy_helper.from_array(np.array([5, 2], D)),
            "values_tensor": numpy_helper.from_array(np.array([50, 20], np.int16)),
            "default_tensor": numpy_helper.from_array(np.array([7], np.int16)),
        }, np.array([20, 50], np.int16),
    ),
    "version 1": (1, np.array(["b", "z"]), {"classes_strings": ["a", "b"]}, N([1, -1])),
    "version 1 back": (
        1, np.array([1, 7]), {"classes_strings": ["a", "b"]}, np.array(["b", "_Unused"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENCODED)
def test_label_encoder(case):
    version, x, attributes, expected = ENCODED[case]
    same(run("LabelEncoder", x, version=version, **attributes)[0], expected)
    if "U" not in (x.dtype.kind, expected.dtype.kind):
        same(run("LabelEncoder", x, version=version, compiled=True, **attributes)[0], expected)


def test_label_encoder_errors():
    for attributes, words in (
        ({"keys_int64s": [1], "values_int64s": [1, 2]}, "1 keys have 2 values"),
        ({"keys_int64s": [1]}, "values_"),
        ({"keys_floats": [1.0], "values_int64s": [1]}, "float32"),
    ):
        with pytest.raises(NodeError, match=words):
            run("LabelEncoder", np.array([1]), version=4, **attributes)


# Linear classifiers -----------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


TRANSFORMS = {
    "NONE": lambda x: x,
    "LOGISTIC": sigmoid,
    "SOFTMAX": softmax,
    "SOFTMAX_ZERO": lambda x: np.where(x == 0, 0, softmax(np.where(x == 0, -np.inf, x))),
}
WEIGHTS = np.array([[1, 2, 3], [-1, 0.5, 2], [0.25, 1, -1]], F)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_classifier(transform):
    x, bias = X[:2], np.array([0.5, 0.25, -0.5], F)
    scores = x @ WEIGHTS.T + bias
    label, found = run(
        "LinearClassifier", x, ("y", "z"), coefficients=WEIGHTS.ravel().tolist(),
        intercepts=bias.tolist(), classlabels_strings=["a", "b", "c"], post_transform=transform,
    )  # fmt: skip
    assert label.tolist() == ["abc"[at] for at in scores.argmax(1)]
    same(found, TRANSFORMS[transform](scores).astype(F), rtol=1e-5)


def test_linear_classifier_of_two_classes():
    score = X @ WEIGHTS[:1].T
    for transform, expected in (
        ("LOGISTIC", sigmoid(np.hstack([-score, score]))),
        ("NONE", np.hstack([1 - score, score])),
    ):
        label, found = run(
            "LinearClassifier", X, ("y", "z"), coefficients=WEIGHTS[0].tolist(),
            classlabels_ints=[5, 6], post_transform=transform,
        )  # fmt: skip
        same(label, np.where(score[:, 0] > 0, 6, 5))
        same(found, expected.astype(F), rtol=1e-5)


KERNELS = {
    "LINEAR": lambda x, v: x @ v.T,
    "POLY": lambda x, v: (0.5 * x @ v.T + 0.25) ** 3,
    "SIGMOID": lambda x, v: np.tanh(0.5 * x @ v.T + 0.25),
    "RBF": lambda x, v: np.exp(-0.5 * ((x[:, None] - v) ** 2).sum(-1)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_support_vector_regressor(kernel, one_class, compiled):
    factors = np.array([1, -2, 0.5], F)
    scores = KERNELS[kernel](X, WEIGHTS) @ factors[:, None] + F(0.125)
    (found,) = run(
        "SVMRegressor", X, compiled=compiled, coefficients=factors.tolist(), rho=[0.125],
        kernel_params=[0.5, 0.25, 3.0], kernel_type=kernel, n_supports=3, one_class=one_class,
        support_vectors=WEIGHTS.ravel().tolist(),
    )  # fmt: skip
    same(found, (np.where(scores > 0, 1, -1) if one_class else scores).astype(F), rtol=1e-5)


def test_support_vector_regressor_without_vectors():
    (found,) = run("SVMRegressor", X, coefficients=[1.0, 2.0, 3.0], rho=[0.5])
    same(found, X @ F([[1], [2], [3]]) + F(0.5))


# Trees ------------------------------------------------------------------------------------------

COMPARISONS = {
    "BRANCH_LEQ": lambda x, t: x <= t, "BRANCH_LT": lambda x, t: x < t,
    "BRANCH_GTE": lambda x, t: x >= t, "BRANCH_GT": lambda x, t: x > t,
    "BRANCH_EQ": lambda x, t: x == t, "BRANCH_NEQ": lambda x, t: x != t,
}  # fmt: skip


class Trees:
    """Random trees of several depths, and what they give for one example after the other."""

    def __init__(self, votes, targets, *, trees=3, positive=False):
        draw = np.random.default_rng(7)
        names = (
            "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
            "missing_value_tracks_true",
        )  # fmt: skip
        self.nodes = {f"nodes_{name}": [] for name in names}
        self.votes = {f"{votes}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
        self.targets, self.count = targets, trees
        self.walk = {}
        for tree in range(trees):
            inner = 2 ** (tree + 1) - 1
            for node in range(2 * inner + 1):
                leaf = node >= inner
                mode = "LEAF" if leaf else str(draw.choice(list(COMPARISONS)))
                feature, value = int(draw.integers(3)), float(draw.choice([-1.0, 0.0, 0.5, 1.0]))
                missing = int(draw.integers(2))
                children = (0, 0) if leaf else (2 * node + 1, 2 * node + 2)
                row = (tree, node, feature, value, mode, *children, missing)
                for entries, entry in zip(self.nodes.values(), row, strict=True):
                    entries.append(entry)
                weights = (
                    [float(F(draw.standard_normal())) for _ in range(targets)] if leaf else []
                )
                weights = [abs(weight) / 8 for weight in weights] if positive else weights
                for target, weight in enumerate(weights):
                    entry = (tree, node, target, weight)
                    for entries, one in zip(self.votes.values(), entry, strict=True):
                        entries.append(one)
                self.walk[tree, node] = (mode, feature, value, children, missing, weights)

    def scores(self, x):
        """Return the votes of each tree for each example: [N, T, targets]."""
        return np.array([[self._leaf(row, tree) for tree in range(self.count)] for row in x])

    def _leaf(self, row, tree):
        node = 0
        while True:
            mode, feature, value, children, missing, weights = self.walk[tree, node]
            if mode == "LEAF":
                return weights
            x = row[feature]
            holds = COMPARISONS[mode](x, value) or (missing and np.isnan(x))
            node = children[0 if holds else 1]


POINTS = np.array(
    [[1, -1, 0], [0.5, NAN, 1], [-3, 2, 0.25], [NAN, NAN, NAN], [0, 0.5, -1], [9, 9, 9]], F
)
AGGREGATES = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("dtype", [F, D, N])
def test_tree_regressor(aggregate, dtype, compiled):
    forest = Trees("target", 2)
    x = POINTS.astype(dtype) if dtype != N else np.array([[1, -1, 0], [3, 2, 1]])
    expected = AGGREGATES[aggregate](forest.scores(x), axis=1) + np.array([0.5, -0.5])
    (found,) = run(
        "TreeEnsembleRegressor", x, version=3, compiled=compiled, n_targets=2,
        aggregate_function=aggregate, base_values=[0.5, -0.5], **forest.nodes, **forest.votes,
    )  # fmt: skip
    same(found, expected.astype(F), rtol=1e-5)


def test_thresholds_of_double_precision():
    forest = Trees("target", 1)
    named = {**forest.nodes, **forest.votes}
    values = np.array(named.pop("nodes_values"), D) + 1e-12
    x = POINTS.astype(D)
    for key, (mode, feature, value, *rest) in list(forest.walk.items()):
        forest.walk[key] = (mode, feature, value + 1e-12, *rest)
    (found,) = run(
        "TreeEnsembleRegressor", x, version=3, n_targets=1,
        nodes_values_as_tensor=numpy_helper.from_array(values), **named,
    )  # fmt: skip
    same(found, forest.scores(x).sum(1).astype(F), rtol=1e-5)


def newer(forest):
    """Return the attributes of TreeEnsemble for trees with votes for one target."""
    inner = [key for key, node in forest.walk.items() if node[0] != "LEAF"]
    leaves = [key for key, node in forest.walk.items() if node[0] == "LEAF"]
    found = {f"nodes_{name}": [] for name in (
        "featureids", "missing_value_tracks_true", "truenodeids", "falsenodeids", "trueleafs",
        "falseleafs",
    )}  # fmt: skip
    modes, splits = [], []
    for tree, node in inner:
        mode, feature, value, children, missing, _ = forest.walk[tree, node]
        modes.append(list(COMPARISONS).index(mode))
        splits.append(value)
        found["nodes_featureids"].append(feature)
        found["nodes_missing_value_tracks_true"].append(missing)
        for side, child in zip(("true", "false"), children, strict=True):
            is_leaf = (tree, child) in leaves
            at = (leaves if is_leaf else inner).index((tree, child))
            found[f"nodes_{side}nodeids"].append(at)
            found[f"nodes_{side}leafs"].append(int(is_leaf))
    weights = np.array([forest.walk[key][5][0] for key in leaves], F)
    return {
        **found,
        "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array(splits, F)),
        "leaf_weights": numpy_helper.from_array(weights),
        "leaf_targetids": [0] * len(leaves),
        "tree_roots": [inner.index((tree, 0)) for tree in range(forest.count)],
        "n_targets": 1,
    }


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_tree_ensemble(aggregate, compiled):
    forest = Trees("target", 1)
    number = ["AVERAGE", "SUM", "MIN", "MAX"].index(aggregate)
    (found,) = run(
        "TreeEnsemble", POINTS, version=5, compiled=compiled, aggregate_function=number,
        **newer(forest),
    )  # fmt: skip
    same(found, AGGREGATES[aggregate](forest.scores(POINTS), axis=1).astype(F), rtol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_tree_classifier(transform):
    forest = Trees("class", 3)
    scores = forest.scores(POINTS).sum(1)
    label, found = run(
        "TreeEnsembleClassifier", POINTS, ("y", "z"), 3, classlabels_int64s=[7, 8, 9],
        post_transform=transform, **forest.nodes, **forest.votes,
    )  # fmt: skip
    same(label, np.array([7, 8, 9])[scores.argmax(1)])
    same(found, TRANSFORMS[transform](scores).astype(F), rtol=1e-5)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_tree_classifier_of_two_classes(positive, transform):
    """All votes are for one class: probabilities if none is negative, else margins."""
    forest = Trees("class", 1, positive=positive)
    score = forest.scores(POINTS).sum(1)
    label, found = run(
        "TreeEnsembleClassifier", POINTS, ("y", "z"), 3, classlabels_strings=["no", "yes"],
        post_transform=transform, **forest.nodes, **forest.votes,
    )  # fmt: skip
    limit = 0.5 if positive else 0
    assert label.tolist() == ["yes" if one > limit else "no" for one in score[:, 0]]
    both = np.hstack([1 - score if positive else -score, score])
    expected = sigmoid(both) if transform == "LOGISTIC" and not positive else both
    same(found, expected.astype(F), rtol=1e-5)


def test_tree_classifier_errors():
    forest = Trees("class", 2)
    with pytest.raises(NodeError, match="2 classes have 1 base_values"):
        run("TreeEnsembleClassifier", POINTS, ("y", "z"), 3, classlabels_int64s=[0, 1],
            base_values=[0.5], **forest.nodes, **forest.votes)  # fmt: skip
    forest = Trees("class", 1)
    with pytest.raises(UnsupportedError, match="base_values"):
        run("TreeEnsembleClassifier", POINTS, ("y", "z"), 3, classlabels_int64s=[0, 1],
            base_values=[0.5, 0.5], **forest.nodes, **forest.votes)  # fmt: skip


BROKEN = {
    "cycle": {"nodes_truenodeids": [0, 0, 0], "nodes_falsenodeids": [2, 0, 0]},
    "child that is not there": {"nodes_truenodeids": [9, 0, 0], "nodes_falsenodeids": [2, 0, 0]},
    "node twice": {"nodes_nodeids": [0, 1, 1]},
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_trees(case):
    whole = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
    }  # fmt: skip
    assert run("TreeEnsembleRegressor", X, version=3, n_targets=1, **whole)[0].shape == (3, 1)
    with pytest.raises(NodeError, match="node"):
        run("TreeEnsembleRegressor", X, version=3, n_targets=1, **{**whole, **BROKEN[case]})


def test_maps():
    zipped = load("ZipMap", X, classlabels_strings=["a", "b", "c"])(X)["y"]
    assert zipped == [dict(zip("abc", row.tolist(), strict=True)) for row in X]


def test_gradient_of_a_linear_model():
    model = load("LinearRegressor", X, coefficients=[1.0, 2.0, 3.0])
    gradient = tp.grad(lambda x: tp.sum(model.apply({}, {"x": x})["y"]))(tp.asarray(X))
    same(gradient.numpy(), np.tile(F([1, 2, 3]), (3, 1)))
