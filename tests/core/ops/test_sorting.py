"""Sorting and searching: sorters, mixed dtypes, partitions, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_numbers_sorters_and_mixed_dtypes():
    x1 = np.array([5, 1, 3], np.int32)
    sorter = tp.argsort(x1)
    same(tp.searchsorted(x1, 3, sorter=sorter), 1, "int32")
    same(tp.searchsorted(x1, [0, 9, 4], sorter=sorter), [0, 3, 2], "int32")
    same(tp.searchsorted(np.array([1, 2], np.int32), 1.5), 1, "int32")
    same(tp.searchsorted(np.array([1.0, 2.0]), np.array([2], np.int8), side="right"), [2], "int32")
    same(tp.lower_bound([1, 2, 2], [2]), [1], "int32")
    same(tp.upper_bound([1, 2, 2], [2]), [3], "int32")


@pytest.mark.parametrize("kth", [0, 3, -1, (1, 4), [0, -2]], ids=repr)
@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_partitions(dtype, axis, kth):
    x = np.random.default_rng(5).integers(-4, 4, (6, 5)).astype(dtype)
    length = x.size if axis is None else x.shape[axis]
    values, indices = tp.partition(x, kth, axis=axis), tp.argpartition(x, kth, axis=axis)
    assert (values.dtype.name, indices.dtype.name) == (dtype, "int32")
    assert values.shape == indices.shape == ((30,) if axis is None else (6, 5))
    flat, at = (x.ravel(), 0) if axis is None else (x, axis)
    np.testing.assert_array_equal(np.take_along_axis(flat, indices.numpy(), at), values.numpy())
    rows = np.moveaxis(values.numpy(), at, -1)
    wanted = np.moveaxis(np.sort(flat, at), at, -1)
    for position in np.ravel(kth):
        k = position % length
        np.testing.assert_array_equal(rows[..., k], wanted[..., k])
        assert (rows[..., :k] <= rows[..., k : k + 1]).all()
        assert (rows[..., k:] >= rows[..., k : k + 1]).all()


M = np.zeros((2, 3), np.float32)
BAD = {  # error: call, what the message says
    ShapeError: [
        (lambda: tp.partition(1.0, 0), "partition: x must have at least rank 1, got"),
        (lambda: tp.partition(M, 3), r"'kth': position 3 is out of range for .* 3"),
        (lambda: tp.argpartition(M, [0, -4]), "'kth': position -4 is out of range"),
        (lambda: tp.partition(M, 0, axis=2), "partition: axis 2 is out of range"),
        (lambda: tp.sort(1.0), "Sort.*axis -1"),
        (lambda: tp.argsort([1.0], axis=1), "ArgSort.*axis.* 1"),
        (lambda: tp.searchsorted(1.0, M), "sorted_sequence must have at least rank 1"),
        (lambda: tp.searchsorted(M, M[:1]), "must have rank 1, or the sizes of values"),
        (lambda: tp.searchsorted(M, 1.0), "must have rank 1, or the sizes of values"),
    ],
    ArgumentError: [
        (lambda: tp.argpartition(M, 0.5), "ArgPartition.*'kth': kth must be an integer"),
        (lambda: tp.argpartition(M, []), "'kth': must name at least one position"),
        (lambda: tp.sort([1.0], descending=1), "'descending': must be True or Fal"),
        (lambda: tp.searchsorted(M[0], M, side="up"), "one of 'left', 'right', got"),
        (lambda: tp.searchsorted(M, M, sorter=[0]), "x1 and sorter must"),
    ],
}


test_bad_calls = refused(BAD, regex=True)
