"""Gathers, masks, coordinates and counts: public functions, and refusals of scatters."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    with tp.use_backend(request.param):
        yield request.param


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(("axis", "indices"), [(0, [1, 1]), (1, [2, -3, 0]), (-1, [[0, 1]])])
def test_take(axis, indices):
    expected = np.take(X, indices, axis=axis)
    expect(tp.take(X, indices, axis=axis), "float32", expected.shape, expected)


def test_take_without_an_axis():
    assert tp.take([5, 6, 7], [2, 0]).tolist() == [7, 5]
    with pytest.raises(ArgumentError, match=re.escape("take: axis is missing, and x is float32[")):
        tp.take(X, [0])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_take_along_axis(axis):
    order = np.argsort(-X % 7, axis=axis)
    expected = np.take_along_axis(X, order, axis=axis)
    expect(tp.take_along_axis(X, order, axis=axis), "float32", X.shape, expected)


@pytest.mark.parametrize(
    ("indices", "axis", "error", "message"),
    [
        ([0], 0, ShapeError, "the ranks differ"),
        ([[[0.5]]], 0, DTypeError, "must be integers"),
        ([[[0]]], 3, ShapeError, "axis 3 is out of range for rank 3"),
        ([[[0], [0]]], 2, ShapeError, "shapes"),
    ],
)
def test_take_along_axis_refuses(indices, axis, error, message):
    with pytest.raises(error, match=message):
        tp.take_along_axis(X, indices, axis=axis)


def test_nonzero():
    x = np.array([[0.0, -1.0, np.nan], [-0.0, 0.0, 2.0]], np.float32)
    for axis, (mine, numpys) in enumerate(zip(tp.nonzero(x), np.nonzero(x), strict=True)):
        assert axis < 2
        expect(mine, "int32", numpys.shape, numpys)
    expect(tp.argwhere(x), "int32", (3, 2), np.argwhere(x))
    expect(tp.argwhere(np.float32(1)), "int32", (1, 0), np.zeros((1, 0)))
    assert [tensor.shape for tensor in tp.nonzero(np.zeros((2, 0), bool))] == [(0,), (0,)]
    with pytest.raises(ShapeError, match="nonzero: x must have at least rank 1"):
        tp.nonzero(1)


@pytest.mark.parametrize(
    ("axis", "mask"), [(0, X[:, 0, 0] > 3), (1, X[0] % 3 == 0), (2, X[0, 0] > 1)]
)
def test_boolean_mask(axis, mask):
    key = (*(slice(None),) * axis, mask)
    expect(tp.boolean_mask(X, mask, axis), "float32", X[key].shape, X[key])


@pytest.mark.parametrize(
    ("mask", "axis", "error", "message"),
    [
        ([1, 0], 0, DTypeError, "but must be boolean"),
        ([True], 0, ShapeError, "must have the sizes of x, which is .* from axis 0 on"),
        (True, 0, ShapeError, "must have the sizes of x, which is .* from axis 0 on"),
        ([True, False], 5, ShapeError, "axis 5 is out of range for rank 3"),
    ],
)
def test_boolean_mask_refuses(mask, axis, error, message):
    with pytest.raises(error, match=message):
        tp.boolean_mask(X, mask, axis)


def test_counts():
    x = [1, 4, 1, 0]
    expect(tp.bincount(x), "int32", (5,), [1, 2, 0, 0, 1])
    expect(tp.bincount(x, size=2), "int32", (2,), [1, 2])
    expect(tp.bincount(x, [0.5, 1, 2, 4], 5), "float32", (5,), [4, 2.5, 0, 0, 1])
    expect(tp.bincount(np.zeros(0, np.int32)), "int32", (0,), np.zeros(0))
    expect(tp.bincount(x, minlength=3), "int32", (5,), [1, 2, 0, 0, 1])
    expect(tp.bincount(x, minlength=7), "int32", (7,), [1, 2, 0, 0, 1, 0, 0])
    expect(tp.bincount(np.zeros(0, np.int32), minlength=2), "int32", (2,), [0, 0])
    rows = [[1, 1, 0], [2, 0, 0]]
    expect(tp.dense_bincount(rows), "int32", (2, 3), [[1, 2, 0], [2, 0, 1]])
    expect(tp.dense_bincount(rows, binary_output=True), "int32", (2, 3), [[1, 1, 0], [1, 0, 1]])


def test_negative_numbers_are_not_counted(backend):
    if backend == "minimal":  # which cannot tell
        assert tp.bincount([-1, 1], size=2).tolist() == [0, 1]
        return
    for function in (tp.bincount, tp.dense_bincount):
        with pytest.raises(ArgumentError, match="x holds -1, but integers to count must not"):
            function([-1, 1], size=2)


REFUSED = [  # call, error, message
    (lambda: tp.gather_nd(X, [[0, 0, 0, 0]]), ShapeError, "of depth 4 do not fit shape [2, 3, 4]"),
    (lambda: tp.gather_nd(X, 0), ShapeError, "indices must have at least rank 1"),
    (lambda: tp.gather_nd(np.zeros((0, 2)), [[0]]), ShapeError, "params is empty"),
    (lambda: tp.scatter_nd([[0]], [1.0, 2.0], (3,)), ShapeError, "updates must have shape [1]"),
    (
        lambda: tp.tensor_scatter_update([1.0, 2.0], [[0]], [[1.0]]),
        ShapeError,
        "TensorScatterUpdate(tensor=float32[2], indices=int32[1,1], updates=float32[1,1]): upd",
    ),
    (
        lambda: tp.sparse_to_dense([[0, 1]], [1.0], (3,)),
        ShapeError,
        "sparse_indices address 2 axes, but output_shape [3] has 1",
    ),
    (lambda: tp.sparse_to_dense([0], [1, 2], (3,)), ShapeError, "or of shape [1]"),
    (lambda: tp.sparse_to_dense([0], 1, (3,), [1]), ShapeError, "default_value must be of rank 0"),
    (lambda: tp.sparse_to_dense([[[0]]], 1, (3,)), ShapeError, "at most 2 is allowed"),
    (lambda: tp.unsorted_segment_sum(X, [0], 1), ShapeError, "begin with that of segm"),
    (lambda: tp.unsorted_segment_sum(X, [0, 0], -1), ArgumentError, "at least 0, got -1"),
    (lambda: tp.bincount([1], size=3, minlength=2), ArgumentError, "minlength exclude each other"),
    (lambda: tp.bincount([1], [1.0, 2.0], 3), ShapeError, "weights must have the shape of x"),
    (lambda: tp.dense_bincount([[[1]]], size=3), ShapeError, "must have rank 1 or 2, got rank 3"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.gather_nd(X, [[0, 3]]),
        lambda: tp.take(X, [-3], axis=0),
        lambda: tp.tensor_scatter_update([1, 2], [[2]], [5]),
        lambda: tp.sparse_to_dense([4], [1], (3,)),
    ],
)
def test_out_of_range_on_the_cpu(call):
    with tp.use_backend("cpu"), pytest.raises(OutOfRangeError, match="is out of range for axis"):
        call()
