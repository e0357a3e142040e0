"""Updates combined by place: what the conformance cases of TensorScatterReduce leave open."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    with tp.use_backend(request.param):
        yield request.param


INF, NAN = np.inf, np.nan
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


def test_scatter_along_axis_edges():
    expect(tp.scatter_along_axis(X, np.zeros((2, 3, 0), np.int32), 1.0), "float32", X.shape, X)
    empty = np.zeros((0, 3), np.float32)
    expect(tp.scatter_along_axis(empty, np.zeros((0, 1), np.int8), 1.0), "float32", (0, 3), empty)
    ids = np.array([[3, 0, 3]], np.uint64)
    wanted = np.array([[1.0, 0, 0, 2]], np.float32)
    zeros = np.zeros((1, 4), np.float32)
    found = tp.scatter_along_axis(zeros, ids, 1, reduction="add")
    expect(found, "float32", (1, 4), wanted)
    if tp.get_backend() == "cpu":
        words = tp.asarray(["a", "b", "c"])
        assert tp.scatter_along_axis(words, [2, -3], ["x", "y"]).tolist() == ["y", "b", "x"]
        found = tp.scatter_along_axis(np.zeros(2), [0], 0.1)
        expect(found, "float64", (2,), np.array([0.1, 0]))


def test_scatter_along_axis_gradients(backend):
    if backend == "minimal":
        pytest.skip("differences need float64")
    rng = np.random.default_rng(7)
    x, values = rng.permutation(24).reshape(2, 3, 4) / 5, rng.permutation(12).reshape(2, 3, 2) / 3
    indices = np.array([[[1, 1], [0, 2], [-1, 3]], [[0, 0], [1, 3], [2, 2]]])
    for reduction in (None, *FOLDS):
        check_grads(
            lambda x, v, how=reduction: (
                tp.scatter_along_axis(x, indices, v + 0.01, reduction=how) ** 2
            ),
            [x, values],
            order=2,
        )


# reduction, the tensor, its gradient and that of three updates to its first element
TIES = [
    ("max", [2.0, 5.0], [0, 1], [0.5, 0, 0.5]),
    ("max", [7.0, 5.0], [1 / 3, 1], [1 / 3, 0, 1 / 3]),
    ("max", [9.0, NAN], [1, 1], [0, 0, 0]),
    ("min", [2.0, -INF], [0.5, 1], [0, 0.5, 0]),
    ("min", [NAN, 5.0], [1, 1], [0, 0, 0]),
]


@pytest.mark.parametrize(("reduction", "tensor", "of_tensor", "of_updates"), TIES)
def test_ties_share_the_gradient(reduction, tensor, of_tensor, of_updates):
    places, updates = [[0], [0], [-2]], tp.asarray([7.0, 2.0, 7.0])
    slopes = tp.grad(
        lambda t, u: tp.sum(tp.tensor_scatter_reduce(t, places, u, reduction)), argnums=(0, 1)
    )(tp.asarray(tensor), updates)
    for found, wanted in zip(slopes, (of_tensor, of_updates), strict=True):
        np.testing.assert_allclose(found.numpy(), np.array(wanted, np.float32), rtol=1e-6)


def test_many_factors_of_one_place(backend):
    """Products of others with zeros among 1000 factors; quotients would be NaN."""
    factors = np.where(np.arange(1000) % 500 == 7, 0, 1.001)
    at = np.zeros((1000, 1), np.int32)
    factors = factors.astype(np.float64 if backend == "cpu" else np.float32)
    for zeros in (1, 2):
        used = factors.copy()
        used[507] = 1 if zeros == 1 else 0
        slopes = tp.grad(
            lambda u: tp.sum(
                tp.tensor_scatter_reduce(tp.full((1,), 2.0, dtype=u.dtype), at, u, "multiply")
            )
        )(tp.asarray(used)).numpy()
        wanted = np.zeros(1000)
        if zeros == 1:
            wanted[7] = 2 * 1.001**998
        np.testing.assert_allclose(slopes, wanted, rtol=1e-4 if backend == "minimal" else 1e-12)


def test_compiled():
    tensor, updates = tp.asarray(X[0]), tp.asarray(X[1] - 9)
    places = tp.asarray([[0], [2], [0]])
    for reduction, fold in FOLDS.items():
        wanted = X[0].copy()
        fold.at(wanted, [0, 2, 0], X[1] - 9)
        program = tp.compile(lambda t, p, u, r=reduction: tp.tensor_scatter_reduce(t, p, u, r) + 1)
        expect(program(tensor, places, updates), "float32", (3, 4), wanted + 1)


BAD = [
    (
        lambda: tp.tensor_scatter_reduce(X, [[0]], X, "max"),
        ShapeError,
        "indices=int32[1,1], updates=float32[2,3,4]): updates must have shape [1, 3, 4]",
    ),
    (
        lambda: tp.tensor_scatter_reduce(X, [[0]], X[:1], "mean"),
        ArgumentError,
        "attribute 'reduction': must be one of 'add', 'multiply', 'max', 'min', got 'mean'",
    ),
    (
        lambda: tp.tensor_scatter_reduce(X, [[0.0]], X[:1], "max"),
        DTypeError,
        "input 'indices' is float32[1,1], but its dtype must be",
    ),
    (
        lambda: tp.tensor_scatter_reduce(X > 1, [[0]], X[:1] > 1, "max"),
        DTypeError,
        "input 'tensor' is bool[2,3,4], but its dtype must be",
    ),
    (
        lambda: tp.scatter_along_axis(X, [0], 1.0),
        ShapeError,
        "scatter_along_axis: x is float32[2,3,4] and indices are int32[1]: the ranks differ",
    ),
    (
        lambda: tp.scatter_along_axis(X, [[[0]]], 1.0, axis=3),
        ShapeError,
        "scatter_along_axis of float32[2,3,4]: axis 3 is out of range",
    ),
    (
        lambda: tp.scatter_along_axis(X, [[[0], [1]]], 1.0),
        ShapeError,
        "scatter_along_axis: indices are int32[1,2,1], but must broadcast to [2, 3, 1]",
    ),
    (
        lambda: tp.scatter_along_axis(X, [[[0]]], X),
        ShapeError,
        "scatter_along_axis: values are float32[2,3,4], but must broadcast to [2, 3, 1]",
    ),
    (
        lambda: tp.scatter_along_axis([1, 2], [0], 1.5),
        DTypeError,
        "scatter_along_axis: x is int32[2]: the value: 1.5 is not an integer",
    ),
    (
        lambda: tp.scatter_along_axis([1, 2], [0], [0.5], reduction="mean"),
        ArgumentError,
        "reduction must be one of None, 'add', 'multiply', 'max', 'min', got 'mean'",
    ),
    (
        lambda: tp.scatter_along_axis([1, 2], [0.5], [1]),
        DTypeError,
        "scatter_along_axis: indices are float32[1], but must be integers",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


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
