"""Updates combined by place: what the conformance cases of TensorScatterReduce leave open."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import expect
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    with tp.use_backend(request.param):
        yield request.param


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
FOLDS = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}


def put(x, indices, values, axis, reduction):
    """Write one element after the other."""
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    indices, values = np.broadcast_to(indices, shape), np.broadcast_to(values, shape)
    out = x.copy()
    for at in np.ndindex(*shape):
        place = list(at)
        place[axis] = indices[at]
        old = out[tuple(place)]
        out[tuple(place)] = FOLDS[reduction](old, values[at]) if reduction else values[at]
    return out


@pytest.mark.parametrize("reduction", [None, *FOLDS])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_along_axis(axis, reduction):
    rng = np.random.default_rng(axis + 1)
    length = X.shape[axis]
    shape = list(X.shape)
    shape[axis] = 5
    for index_shape in (shape, [5 if n == axis % 3 else 1 for n in range(3)]):
        indices = rng.integers(-length, length, index_shape)
        values = rng.integers(-9, 9, shape).astype(np.float32) / 4
        for given in (values, values.flat[0]):
            wanted = put(X, indices, given, axis, reduction)
            found = tp.scatter_along_axis(X, indices, given, axis=axis, reduction=reduction)
            expect(found, "float32", X.shape, wanted)


BAD = {  # error: call, what the message says
    ShapeError: [
        (
            lambda: tp.tensor_scatter_reduce(X, [[0]], X, "max"),
            "indices=int32[1,1], updates=float32[2,3,4]): updates must have shape [1, 3, 4]",
        ),
        (
            lambda: tp.scatter_along_axis(X, [0], 1.0),
            "scatter_along_axis: x is float32[2,3,4] and indices are int32[1]: the ranks differ",
        ),
        (
            lambda: tp.scatter_along_axis(X, [[[0]]], 1.0, axis=3),
            "scatter_along_axis of float32[2,3,4]: axis 3 is out of range",
        ),
        (
            lambda: tp.scatter_along_axis(X, [[[0], [1]]], 1.0),
            "scatter_along_axis: indices are int32[1,2,1], but must broadcast to [2, 3, 1]",
        ),
        (
            lambda: tp.scatter_along_axis(X, [[[0]]], X),
            "scatter_along_axis: values are float32[2,3,4], but must broadcast to [2, 3, 1]",
        ),
    ],
    ArgumentError: [
        (
            lambda: tp.tensor_scatter_reduce(X, [[0]], X[:1], "mean"),
            "attribute 'reduction': must be one of 'add', 'multiply', 'max', 'min', got 'mean'",
        ),
        (
            lambda: tp.scatter_along_axis([1, 2], [0], [0.5], reduction="mean"),
            "reduction must be one of None, 'add', 'multiply', 'max', 'min', got 'mean'",
        ),
    ],
    DTypeError: [
        (
            lambda: tp.tensor_scatter_reduce(X, [[0.0]], X[:1], "max"),
            "input 'indices' is float32[1,1], but its dtype must be",
        ),
        (
            lambda: tp.tensor_scatter_reduce(X > 1, [[0]], X[:1] > 1, "max"),
            "input 'tensor' is bool[2,3,4], but its dtype must be",
        ),
        (
            lambda: tp.scatter_along_axis([1, 2], [0], 1.5),
            "scatter_along_axis: x is int32[2]: the value: 1.5 is not an integer",
        ),
        (
            lambda: tp.scatter_along_axis([1, 2], [0.5], [1]),
            "scatter_along_axis: indices are float32[1], but must be integers",
        ),
    ],
}


test_bad_calls = refused(BAD)


def test_orders_of_complex_numbers(backend):
    if backend == "minimal":
        pytest.skip("the example has no complex numbers")
    message = "complex64 has no order, so reduction 'min' is impossible"
    with pytest.raises(DTypeError, match=message):
        tp.tensor_scatter_reduce([1j], [[0]], [1j], "min")


def test_indices_out_of_range(backend):
    if backend == "minimal":
        pytest.skip("it drops them")
    for reduction in FOLDS:
        with pytest.raises(OutOfRangeError, match="index 2 is out of range for axis 0"):
            tp.tensor_scatter_reduce([1.0, 2.0], [[2]], [1.0], reduction)
        with pytest.raises(OutOfRangeError, match="index -5 is out of range for axis 1"):
            tp.scatter_along_axis(X[0], [[-5]], 1.0, reduction=reduction)
