"""Reductions, softmax and running sums: old versions, integers, no elements, limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug_onnx import NodeError

from .one_operator import WAYS, assert_same, outputs_of

X = np.array([[[1.0, -2, 3], [0.5, 4, -1]], [[2, 2, -7], [8, 0.25, 6]]], np.float32)
WHOLE = np.array([[3, -4], [6, 8]], np.int32)
INF = math.inf


def ints(*numbers):
    return np.array(numbers, np.int64)


def full(value, dtype, *shape):
    return np.full(shape, value, dtype)


# The formula of each reduction, in float64.
FORMULAS = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **more: np.sum(np.abs(x), **more),
    "ReduceL2": lambda x, **more: np.sqrt(np.sum(x**2, **more)),
    "ReduceLogSum": lambda x, **more: np.log(np.sum(x, **more)),
    "ReduceLogSumExp": lambda x, **more: np.log(np.sum(np.exp(x), **more)),
    "ReduceSumSquare": lambda x, **more: np.sum(x**2, **more),
}

# Axes (None if they are left out), keepdims, and the axes that are reduced.
CALLS = {
    "one": ([1], 1, (1,)),
    "from the end": ([-1, 0], 0, (0, 2)),
    "all": (None, 0, (0, 1, 2)),
    "all, kept": (None, 1, (0, 1, 2)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("opset", [7, 11, 13, 18, 28])
@pytest.mark.parametrize("operator", FORMULAS)
def test_axes_were_an_attribute_and_are_an_input(operator, opset, call, way):
    axes, keepdims, reduced = CALLS[call]
    inputs, attributes = [np.abs(X)], {"keepdims": keepdims}
    if opset >= (13 if operator == "ReduceSum" else 18):
        inputs += [] if axes is None else [ints(*axes)]
    elif axes is not None:
        attributes["axes"] = axes
    (found,) = outputs_of(way, operator, inputs, attributes, opset=opset)
    expected = FORMULAS[operator](
        np.abs(X).astype(np.float64), axis=reduced, keepdims=bool(keepdims)
    )
    assert found.dtype == np.float32
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


NONE = np.zeros((2, 0, 3), np.float32)
KEPT = {"noop_with_empty_axes": 1}

# What is asked, by name: operator, inputs, attributes, opset, expected output.
CASES = {
    "largest of no floats": ("ReduceMax", [NONE, ints(1)], {}, 20,
                             full(-INF, np.float32, 2, 1, 3)),
    "smallest of no integers": ("ReduceMin", [NONE.astype(np.int8), ints(1)], {"keepdims": 0}, 20,
                                full(127, np.int8, 2, 3)),
    "largest of no unsigned integers": (
        "ReduceMax", [NONE.astype(np.uint8), ints(1)], {"keepdims": 0}, 20,
        full(0, np.uint8, 2, 3)),
    "largest of no booleans": ("ReduceMax", [NONE.astype(bool), ints(1)], {"keepdims": 0}, 20,
                               full(False, bool, 2, 3)),
    "smallest of no booleans": ("ReduceMin", [NONE.astype(bool), ints(1)], {"keepdims": 0}, 20,
                                full(True, bool, 2, 3)),
    "an axis that stays is empty": ("ReduceMax", [NONE, ints(0)], {}, 20,
                                    full(0, np.float32, 1, 0, 3)),
    "product of none": ("ReduceProd", [NONE, ints(1)], {"keepdims": 0}, 18,
                        full(1, np.float32, 2, 3)),
    "logarithm of the sum of none": ("ReduceLogSum", [NONE, ints(1)], {"keepdims": 0}, 18,
                                     full(-INF, np.float32, 2, 3)),
    "no axes, all": ("ReduceSum", [X, ints()], {"keepdims": 0}, 13, np.float32(X.sum())),
    "no axes, none": ("ReduceSum", [X, ints()], KEPT, 13, X),
    "axes left out, none": ("ReduceMin", [X], KEPT, 18, X),
    "no axes, none, but the squares": ("ReduceSumSquare", [X, ints()], KEPT, 18, X * X),
    "no axes, none, but the magnitudes": ("ReduceL2", [X, ints()], KEPT, 18, np.abs(X)),
    "bytes stay bytes": ("ReduceSum", [np.int8([[100, 100]]), ints(1)], {"keepdims": 0}, 13,
                         np.int8([-56])),
    "integers of 64 bits": ("ReduceSum", [ints(2**62, 1)], {"keepdims": 0}, 13,
                            np.int64(2**62 + 1)),
    "mean of integers": ("ReduceMean", [WHOLE], {"axes": [1], "keepdims": 0}, 11,
                         np.int32([0, 7])),
    "norm of integers": ("ReduceL2", [WHOLE], {"axes": [1], "keepdims": 0}, 11, np.int32([5, 10])),
    "magnitudes of integers": ("ReduceL1", [WHOLE], {"axes": [1], "keepdims": 0}, 11,
                               np.int32([7, 14])),
    "norm of halves": ("ReduceL2", [np.float16([300, 400])], {"keepdims": 0}, 13, np.float16(500)),
    "booleans": ("ReduceMax", [np.array([[False, True], [False, False]]), ints(1)],
                 {"keepdims": 0}, 20, np.array([True, False])),
    "first of the largest": ("ArgMax", [np.float32([[2, 7, 7]])], {"axis": 1}, 7, ints(1)[None]),
    "last of the largest": ("ArgMax", [np.float32([[2, 7, 7]])],
                            {"axis": -1, "select_last_index": 1, "keepdims": 0}, 12, ints(2)),
    "last of the smallest": ("ArgMin", [np.int32([[2, 2, 7], [1, 3, 1]])],
                             {"axis": 1, "select_last_index": 1, "keepdims": 0}, 13, ints(1, 2)),
    "along the first axis by default": ("ArgMin", [WHOLE], {"keepdims": 0}, 13, ints(0, 0)),
    "sums before": ("CumSum", [np.int32([[1, 2, 4]]), np.array(1, np.int32)], {"exclusive": 1}, 11,
                    np.int32([[0, 1, 3]])),
    "sums after": ("CumSum", [ints(1, 2, 4), np.array(-1, np.int64)],
                   {"exclusive": 1, "reverse": 1}, 14, ints(6, 4, 0)),
    "products from the end": ("CumProd", [np.float32([2, 3, 4]), np.array(0)], {"reverse": 1}, 26,
                              np.float32([24, 12, 4])),
    "Hardmax, one of equals": ("Hardmax", [np.float32([[1, 3, 3], [0, 0, 0]])], {}, 13,
                               np.float32([[0, 1, 0], [1, 0, 0]])),
    "Hardmax, along the first axis": ("Hardmax", [np.float32([[1, 3], [2, 1]])], {"axis": 0}, 13,
                                      np.float32([[0, 1], [1, 0]])),
    "Hardmax of all axes from the second": (
        "Hardmax", [X], {}, 11, np.float32(X.max((1, 2), keepdims=True) == X)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, way):
    operator, inputs, attributes, opset, expected = CASES[name]
    (found,) = outputs_of(way, operator, inputs, attributes, opset=opset)
    assert_same(found, expected)


def softmax(x, axes):
    powers = np.exp(x.astype(np.float64))
    return powers / powers.sum(axis=axes, keepdims=True)


# The opset, the attribute, and the axes that it stands for.
OLD_AND_NEW = {
    "up to 12, the default": (7, {}, (1, 2)),
    "up to 12": (11, {"axis": 0}, (0, 1, 2)),
    "up to 12, from the end": (11, {"axis": -1}, (2,)),
    "13, the default": (13, {}, (2,)),
    "13": (13, {"axis": 1}, (1,)),
}


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("name", OLD_AND_NEW)
def test_softmax_had_two_axes(name, operator):
    opset, attributes, axes = OLD_AND_NEW[name]
    (found,) = outputs_of("called", operator, [X], attributes, opset=opset)
    expected = softmax(X, axes)
    if operator == "LogSoftmax":
        expected = np.log(expected)
    assert found.dtype == np.float32
    assert found.shape == X.shape
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_of_no_rows(opset):
    (found,) = outputs_of("called", "Softmax", [X[:0]], {"axis": 1}, opset=opset)
    assert_same(found, X[:0])


# What must not run, by name: operator, inputs, attributes, opset.
WRONG = {
    "axis of a sum": ("ReduceSum", [X, ints(3)], {}, 13),
    "axis of a sum of none": ("ReduceMax", [NONE, ints(3)], {}, 20),
    "axes of another rank": ("ReduceSum", [X, np.array(1)], {}, 13),
    "axis twice": ("ReduceSum", [X, ints(1, -2)], {}, 13),
    "axis of an old softmax": ("Softmax", [X], {"axis": 4}, 11),
    "axis of a softmax": ("Softmax", [X], {"axis": 3}, 13),
    "axis of ArgMax": ("ArgMax", [X], {"axis": -4}, 13),
    "axis of CumSum": ("CumSum", [X, np.array(3)], {}, 14),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_node(name):
    operator, inputs, attributes, opset = WRONG[name]
    with pytest.raises(NodeError, match=operator):
        outputs_of("called", operator, inputs, attributes, opset=opset)
