"""Operators on indices: all versions, special values, on the host, on the device, compiled."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tensorplug as tp
from tensorplug_onnx import NodeError, ValueNeededError

from .one_operator import TEXT, WAYS, assert_same, model_of, outputs_of

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
WORDS = np.array([["a", "b", "c"], ["d", "e", "f"]], TEXT)
NAN = np.nan


def ints(*numbers):
    return np.array(numbers, np.int64)


def floats(*numbers):
    return np.array(numbers, np.float32)


def replaced(places, values):
    """Return X with other elements: by a formula of its own for each place."""
    found = X.copy()
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found


CASES = {
    "Gather 1": ("Gather", [X, ints(2, -1)], {"axis": 1}, 7, X[:, [2, 2]]),
    "Gather of text": ("Gather", [WORDS, ints(-1)[0]], {"axis": 1}, 13, WORDS[:, 2]),
    "Gather of one text": ("Gather", [WORDS[0], ints(1)[0]], {}, 13, np.array("b", TEXT)),
    "Gather, 32 bits": ("Gather", [X, np.array([[1]], np.int32)], {"axis": -1}, 13, X[..., [[1]]]),
    # Indices can be fewer than the elements on the other axes.
    "GatherElements of a corner": (
        "GatherElements", [X, ints(2, -1, 0).reshape(1, 3, 1)], {"axis": 1}, 13,
        floats(8, 8, 0).reshape(1, 3, 1)),
    "GatherElements, one on another axis": (
        "GatherElements", [X, ints(1, 0).reshape(1, 1, 2)], {"axis": 2}, 11,
        floats(1, 0).reshape(1, 1, 2)),
    "GatherElements of more": (
        "GatherElements", [X[:, 0], np.array([[1, 1], [0, 0], [1, 1]])], {"axis": 0}, 13,
        np.array([[12, 13], [0, 1], [12, 13]], np.float32)),
    "GatherND 11": ("GatherND", [X, np.array([[1, -1], [0, 0]])], {}, 11, X[[1, 0], [2, 0]]),
    "GatherND of text": ("GatherND", [WORDS, np.array([[1, 2]])], {}, 13, np.array(["f"], TEXT)),
    "GatherND of batches": (
        "GatherND", [X, np.array([[[2], [0]], [[1], [1]]])], {"batch_dims": 1}, 12,
        np.stack([X[0, [2, 0]], X[1, [1, 1]]])),
    "GatherND of batches of two axes": (
        "GatherND", [X, ints(3, 0, -1, 2, 1, 0).reshape(2, 3, 1)], {"batch_dims": 2}, 13,
        floats(3, 4, 11, 14, 17, 20).reshape(2, 3)),
    "Scatter 9": (
        "Scatter", [X, ints(1).reshape(1, 1, 1), floats(-1).reshape(1, 1, 1)], {"axis": 1}, 9,
        replaced([(0, 1, 0)], [-1])),
    "ScatterElements of a corner, added": (
        "ScatterElements",
        [X, ints(2, 2, -1).reshape(1, 3, 1), floats(1, 2, 4).reshape(1, 3, 1)],
        {"axis": 1, "reduction": "add"}, 16, replaced([(0, 2, 0)], [15])),
    "ScatterElements of text": (
        "ScatterElements", [WORDS, np.array([[1, 0, 1]]),
                                            np.array([["x", "y", "z"]], TEXT)], {}, 13,
        np.array([["a", "y", "c"], ["x", "e", "z"]], TEXT)),
    "ScatterElements, the greatest": (
        "ScatterElements", [floats(1, NAN, 3), ints(0, 1, 2), floats(NAN, 5, 2)],
        {"reduction": "max"}, 18, floats(NAN, NAN, 3)),
    "ScatterND, multiplied": (
        "ScatterND", [X, np.array([[1, 0], [1, 0]]), np.full((2, 4), 3, np.float32)],
        {"reduction": "mul"}, 16, replaced([(1, 0)], [9 * X[1, 0]])),
    "ScatterND of text": (
        "ScatterND", [WORDS, np.array([[0, -1]]), np.array(["z"], TEXT)], {}, 11,
        np.array([["a", "b", "z"], ["d", "e", "f"]], TEXT)),
    "ScatterND of integers, the least": (
        "ScatterND", [ints(2**62, 5), np.array([[0], [0]]), ints(2**62 - 1, 2**62 + 1)],
        {"reduction": "min"}, 18, ints(2**62 - 1, 5)),
    "OneHot 9": (
        "OneHot", [np.array([0, -1, 3, -4], np.int8), np.array(3.0, np.float32), ints(7, 9)],
        {"axis": 0}, 9, np.array([[9, 7, 7, 7], [7, 7, 7, 7], [7, 9, 7, 7]])),
    "OneHot of floats": (
        "OneHot", [floats(1.75, -0.5), ints(2), np.array(["no", "yes"], TEXT)], {}, 11,
        np.array([["no", "yes"], ["yes", "no"]], TEXT)),
    # 255 + 300 has more than 8 bits.
    "OneHot of bytes": (
        "OneHot", [np.array([255, 0], np.uint8), ints(300), floats(0, 1)], {}, 11,
        np.eye(300, dtype=np.float32)[[255, 0]]),
    "Compress": (
        "Compress", [X, np.array([False, True])], {"axis": -1}, 11, X[..., 1:2]),
    "Compress of text": (
        "Compress", [WORDS, np.array([True, False, False, True])], {}, 9, np.array(["a", "d"],
                                     TEXT)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_indices(name, way):
    op_type, inputs, attributes, opset, expected = CASES[name]
    (found,) = outputs_of(way, op_type, inputs, attributes, opset=opset)
    assert_same(found, expected)


# Input, attributes, opset, k (an attribute in opset 7), and the indices that are expected.
TOP = {
    "TopK 1": (floats(3, 1, 3, 2), {"axis": 0, "k": 3}, 7, [0, 2, 3]),
    "TopK 10": (floats(3, 1, 3, 2), {}, 10, [0, 2, 3]),
    "smallest": (floats(3, 1, 1, 2), {"largest": 0}, 11, [1, 2, 3]),
    "smallest, unsorted": (floats(3, 1, 1, 2), {"largest": 0, "sorted": 0}, 11, [1, 2, 3]),
    "NaN is the largest": (floats(3, NAN, np.inf, 2), {}, 11, [1, 2, 0]),
    "NaN is not the smallest": (floats(NAN, 3, -np.inf), {"largest": 0}, 11, [2, 1, 0]),
    "the least of 64 bits": (ints(0, -(2**63), 2**63 - 1), {"largest": 0}, 11, [1, 0, 2]),
    "without a sign": (np.array([0, 2**64 - 1, 5], np.uint64), {"largest": 0}, 11, [0, 2, 1]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TOP)
def test_top_k(name, way):
    x, attributes, opset, order = TOP[name]
    inputs = [x] if opset < 10 else [x, ints(3)]
    found = outputs_of(way, "TopK", inputs, attributes, opset=opset, outputs=2)
    assert_same(found[0], x[order])
    assert_same(found[1], ints(*order))


def test_top_k_on_an_axis_in_the_middle():
    found = outputs_of("compiled", "TopK", [X, ints(2)], {"axis": 1}, opset=24, outputs=2)
    assert_same(found[0], X[:, 2:0:-1])
    assert_same(found[1], np.broadcast_to(ints(2, 1)[:, None], (2, 2, 4)))


NONZERO = {
    "a matrix": (np.array([[0, 2.5], [-1, NAN]], np.float32), np.array([[0, 1, 1], [1, 0, 1]])),
    "truths": (np.array([True, False]), np.array([[0]])),
    "nothing": (np.zeros((2, 0), np.int32), np.zeros((2, 0), np.int64)),
    # ONNX: "for scalar input, NonZero produces output shape (0, N) instead of (1, N)".
    "a scalar": (np.array(3.0, np.float32), np.zeros((0, 1), np.int64)),
    "a scalar 0": (np.array(0, np.int64), np.zeros((0, 0), np.int64)),
}


@pytest.mark.parametrize("way", ["called", "constant"])
@pytest.mark.parametrize("name", NONZERO)
def test_places_of_what_is_not_zero(name, way):
    x, expected = NONZERO[name]
    (found,) = outputs_of(way, "NonZero", [x], opset=13)
    assert_same(found, expected)


UNIQUE = {
    "text in order": (np.array(["b", "a", "b"], TEXT), {"sorted": 0}, [[0, 1], [0, 1, 0], [2, 1]]),
    "three texts in order": (
        np.array(["c", "a", "b", "c"], TEXT), {"sorted": 0},
        [[0, 1, 2], [0, 1, 2, 0], [2, 1, 1]]),
    "text, sorted": (np.array(["b", "a", "b"], TEXT), {}, [[1, 0], [1, 0, 1], [1, 2]]),
    "rows in order": (
        np.array([[3, 1], [0, 1], [3, 1]], ml_dtypes.bfloat16).astype(np.float16),
        {"sorted": 0, "axis": 0}, [[0, 1], [0, 1, 0], [2, 1]]),
    "flat": (np.array([[2, 2], [1, 2]], np.uint8), {}, [[2, 0], [1, 1, 0, 1], [1, 3]]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNIQUE)
def test_unique(name):
    x, attributes, numbers = UNIQUE[name]
    found = outputs_of("called", "Unique", [x], attributes, opset=11, outputs=4)
    flat = x.reshape(-1) if "axis" not in attributes else x
    assert_same(found[0], flat[numbers[0]])
    for one, expected in zip(found[1:], numbers, strict=True):
        assert_same(one, ints(*expected))


BOXES = np.array([[[0, 0, 1, 1], [1, 1, 0, 0.5], [0, 0, 1, 1], [2, 2, 2, 3]]], np.float32)
SCORES = np.array([[[0.5, 0.75, 0.5, 0.25], [0.5, 0.5, 0.5, 0.5]]], np.float32)
KEPT = {
    # Nothing is asked for, by default.
    "default": ([], {}, []),
    # Half of the second box is in the others: 1/2 is not over 1/2.
    "at the threshold": ([ints(9), floats(0.5)], {},
                         [[0, 0, 1], [0, 0, 0], [0, 0, 3], [0, 1, 0], [0, 1, 1], [0, 1, 3]]),
    "no overlap": ([ints(9)], {}, [[0, 0, 1], [0, 0, 3], [0, 1, 0], [0, 1, 3]]),
    "identical boxes": ([ints(2), floats(1)], {}, [[0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 1, 1]]),
    "scores above": ([ints(9), None, floats(0.5)], {}, [[0, 0, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("centers", [False, True])
@pytest.mark.parametrize("name", KEPT)
def test_boxes(name, centers):
    more, attributes, expected = KEPT[name]
    boxes = BOXES
    if centers:
        low, high = (
            np.minimum(boxes[..., :2], boxes[..., 2:]),
            np.maximum(boxes[..., :2], boxes[..., 2:]),
        )
        boxes = np.concat([(low + high) / 2, high - low], axis=-1)
        attributes = {**attributes, "center_point_box": 1}
    (found,) = outputs_of(
        "called", "NonMaxSuppression", [boxes, SCORES, *more], attributes, opset=11
    )
    assert_same(found, np.array(expected, np.int64).reshape(-1, 3))


def test_of_equal_boxes_the_first_is_kept():
    boxes = np.arange(300, dtype=np.float32)[:, None] + np.array([0, 0, 0.5, 0.5], np.float32)
    scores = np.float32(np.arange(300) % 3)
    (found,) = outputs_of(
        "called", "NonMaxSuppression", [boxes[None], scores[None, None], ints(200)]
    )
    assert_same(found[:, 2], np.append(np.arange(2, 300, 3), np.arange(1, 300, 3)))


WRONG = {
    "Gather": ([X, ints(3)], {"axis": 1}, "out of (range|bounds)"),
    "GatherND": ([X, np.array([[0, 0, 4]])], {}, "out of (range|bounds)"),
    "GatherElements": ([X, ints(0).reshape(1, 1, 1)], {"axis": 3}, "axis 3 is out of range"),
    "ScatterND": ([X, np.array([[-3]]), X[:1]], {}, "out of (range|bounds)"),
    "ScatterElements": ([X, np.zeros((3, 1, 1), np.int64), np.zeros((3, 1, 1), np.float32)],
                        {"axis": 1}, "shape"),
    "TopK": ([X, ints(5)], {}, "must be from 0 to 4"),
    "OneHot": ([ints(0), ints(3), floats(0, 1)], {"axis": 2}, "axis 2 is out of range"),
    "NonMaxSuppression": ([BOXES, SCORES, ints(1), floats(1.5)], {}, "must be from 0 to 1"),
}  # fmt: skip


@pytest.mark.parametrize("way", ["called", "constant"])
@pytest.mark.parametrize("op_type", WRONG)
def test_wrong_indices_are_named(op_type, way):
    inputs, attributes, words = WRONG[op_type]
    outputs = 2 if op_type == "TopK" else 1
    with pytest.raises(NodeError, match=rf"node \({op_type}, .*{words}"):
        outputs_of(way, op_type, inputs, attributes, opset=18, outputs=outputs)


@pytest.mark.parametrize("op_type", ["NonZero", "Unique"])
def test_shapes_that_depend_on_values_are_not_compiled(op_type):
    with pytest.raises(ValueNeededError, match=op_type):
        model_of(op_type, [X]).compile()(X)


SUMS = {
    "Gather": ([X, ints(2, 0, 2)], {"axis": 1}),
    "GatherElements": ([X, ints(3, 3, 1).reshape(1, 1, 3)], {"axis": 2}),
    "GatherND": ([X, ints(3, 0, -1, 2, 1, 0).reshape(2, 3, 1)], {"batch_dims": 2}),
    "TopK": ([X, ints(2)], {"largest": 0}),
    "Compress": ([X, np.array([False, True])], {"axis": 1}),
}


@pytest.mark.parametrize("op_type", SUMS)
def test_gradients_count_what_is_taken(op_type):
    inputs, attributes = SUMS[op_type]
    outputs = 2 if op_type == "TopK" else 1
    constant = tuple(range(1, len(inputs)))
    model = model_of(op_type, inputs, attributes, constant=constant, outputs=outputs)

    def total(x):
        return tp.sum(model.apply(model.parameters, {"x0": x})["y0"])

    taken = outputs_of("called", op_type, inputs, attributes, outputs=outputs)[0]
    counts = [(taken == value).sum() for value in X.flat]
    assert_same(tp.grad(total)(tp.asarray(X)).numpy(), np.float32(counts).reshape(X.shape))


def test_gradients_of_what_is_put():
    """What is replaced has none; what is added to, and what is added, have 1."""
    inputs = [X, np.array([[1, 2]]), np.full((1, 4), 5, np.float32)]
    for reduction, at_place in (("none", 0.0), ("add", 1.0)):
        model = model_of("ScatterND", inputs, {"reduction": reduction}, constant=(1,))

        def total(x, updates, model=model):
            return tp.sum(model.apply(model.parameters, {"x0": x, "x2": updates})["y0"])

        of_x, of_updates = tp.grad(total, argnums=(0, 1))(*map(tp.asarray, inputs[::2]))
        assert_same(of_x.numpy(), np.where(np.isin(X, X[1, 2]), at_place, 1).astype(np.float32))
        assert_same(of_updates.numpy(), np.ones((1, 4), np.float32))
