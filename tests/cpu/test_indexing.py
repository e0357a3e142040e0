"""Reading and writing at indices, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.errors import ArgumentError
from tensorplug.ops.indexing import indexing as ops
from tensorplug.plugin import dtypes as dt

ANY = sorted(dtype.name for dtype in dt.ANY)
NUMERIC = sorted(dtype.name for dtype in dt.NUMERIC)
INTEGERS = sorted(dtype.name for dtype in dt.INTEGER)


def numbers(shape, dtype):
    count = int(np.prod(shape))
    plain = np.arange(1, count + 1).reshape(shape)
    if dtype == "string":
        return np.array(
            [f"element number {number}" for number in plain.flat], dt.string.numpy
        ).reshape(shape)
    return (plain % 2 if dtype == "bool" else plain).astype(dtype)


def same(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


GATHERS = [  # shape of x, indices, axis, batch_dims
    ((5,), [0, 4, -1, -5], 0, 0),
    ((5,), 2, 0, 0),
    ((5,), -2, 0, 0),
    ((3, 4), [[2, 0], [1, 1]], 0, 0),
    ((3, 4), [3, 0], 1, 0),
    ((3, 4), 1, 1, 0),
    ((2, 3, 4), [1, -1], 2, 0),
    ((2, 3), [[0, 2], [1, 1]], 1, 1),
    ((2, 3, 4), [[0, -1], [1, 0]], 2, 1),
    ((2, 2, 3), [[[0], [2]], [[1], [-1]]], 2, 2),
    ((2, 3), [1, 2], 1, 1),
    ((3, 0), [0, 1], 0, 0),
    ((3, 2), np.zeros((0, 2)), 0, 0),
    ((0, 2), np.zeros((0, 3)), 1, 1),
]


@pytest.mark.parametrize("dtype", ANY)
@pytest.mark.parametrize(("shape", "indices", "axis", "batch"), GATHERS)
def test_gather(call, dtype, shape, indices, axis, batch):
    x, at = numbers(shape, dtype), np.array(indices, np.int32)
    target = (*shape[:axis], *at.shape[batch:], *shape[axis + 1 :])
    expected = np.empty(target, x.dtype)
    inner = at.ndim - batch
    for place in np.ndindex(*target):
        which = at[(*place[:batch], *place[axis : axis + inner])]
        expected[place] = x[(*place[:axis], which, *place[axis + inner :])]
    same(call(ops.GATHER_V2, x, at, axis=axis, batch_dims=batch), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_gather_by_every_index_dtype(call, dtype):
    same(
        call(ops.GATHER_V2, numbers((3,), "float32"), np.array([2, 0], dtype)),
        np.array([3, 1], "float32"),
    )


@pytest.mark.parametrize(
    ("index", "dtype", "shown"),
    [(3, "int32", "3"), (-4, "int8", "-4"), (2**64 - 1, "uint64", str(2**64 - 1))],
)
@pytest.mark.parametrize("batch", [0, 1])
def test_gather_out_of_range(call, index, dtype, shown, batch):
    with pytest.raises(
        ArgumentError, match=f"index {shown} is out of range for axis 1 of length 3"
    ):
        call(
            ops.GATHER_V2,
            numbers((2, 3), "float32"),
            np.array([[0, index]] * 2, dtype),
            axis=1,
            batch_dims=batch,
        )


SCATTERS = [  # indices, shape
    ([[0], [2], [0]], (4,)),
    ([[0, 1], [0, 1], [1, 0]], (2, 3)),
    ([[1], [1]], (3, 2)),
    ([[[0], [1]], [[-1], [0]]], (3, 2, 2)),
    ([[2, -1], [0, 0]], (3, 2, 1)),
    (np.zeros((0, 1)), (3,)),
    (np.zeros((2, 0)), (3,)),
    (np.zeros((0, 2)), (0, 3)),
    ([1], (3,)),
    ([[0], [0]], (1, 0)),
]


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize(("indices", "shape"), SCATTERS)
def test_scatter(call, dtype, indices, shape):
    at = np.array(indices, np.int64)
    depth = at.shape[-1]
    updates = numbers((*at.shape[:-1], *shape[depth:]), dtype)
    if dtype.startswith("complex"):
        updates = updates * np.array(1 - 2j, dtype)
    expected = np.zeros(shape, dtype)
    for place in np.ndindex(*at.shape[:-1]):
        expected[tuple(at[place])] += updates[place]
    same(call(ops.SCATTER_ND, at, updates, shape=shape), expected)


def test_scattered_integers_wrap_and_keep_every_bit(call):
    updates = np.array([2**53 + 1, 2**63 - 1, 1], "int64")
    result = call(ops.SCATTER_ND, np.array([[0], [1], [1]]), updates, shape=(2,))
    same(result, np.array([2**53 + 1, -(2**63)], "int64"))


def test_many_small_floats_add_up(call):
    updates = np.full(4096, 1.0, "float16")
    result = call(ops.SCATTER_ND, np.zeros((4096, 1), np.int32), updates, shape=(1,))
    same(result, np.array([4096], "float16"))


@pytest.mark.parametrize(
    ("index", "axis", "length"), [([0, 3], 1, 3), ([2, 0], 0, 2), ([-3, 0], 0, 2)]
)
def test_scatter_out_of_range(call, index, axis, length):
    outside = index[axis]
    with pytest.raises(
        ArgumentError, match=f"index {outside} is out of range for axis {axis} of length {length}"
    ):
        call(ops.SCATTER_ND, np.array([index]), np.ones(1, "float32"), shape=(2, 3))


@pytest.mark.parametrize("dtype", sorted(dtype.name for dtype in dt.FIXED))
@pytest.mark.parametrize("indices", [[0, 2, 3, 1], [[1, 99], [0, 0]], 2, np.zeros((0, 2))])
@pytest.mark.parametrize("depth", [3, 0])
@pytest.mark.parametrize(("on", "off"), [(1, 0), (0, 1)])
def test_one_hot(call, dtype, indices, depth, on, off):
    at = np.array(indices, np.int32)
    expected = np.array([[on if i == j else off for j in range(depth)] for i in at.flat]).reshape(
        *at.shape, depth
    )
    result = call(ops.ONE_HOT, at, depth=depth, on_value=on, off_value=off, dtype=dtype)
    same(result, expected.astype(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_one_hot_ignores_indices_out_of_range(call, dtype):
    limits = np.iinfo(dtype)
    result = call(ops.ONE_HOT, np.array([limits.max, limits.min, 1], dtype), depth=2, dtype="int8")
    lowest = [0, 0] if limits.min else [1, 0]
    same(result, np.array([[0, 0], lowest, [0, 1]], "int8"))
