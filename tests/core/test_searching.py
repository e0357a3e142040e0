"""Places in sorted sequences: sorters, mixed dtypes, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def expect(actual, expected):
    wanted = np.asarray(expected)
    assert (actual.dtype, actual.shape) == (tp.int32, wanted.shape)
    np.testing.assert_array_equal(actual.numpy(), wanted)


def test_numbers_sorters_and_mixed_dtypes():
    x1 = np.array([5, 1, 3], np.int32)
    sorter = tp.argsort(x1)
    expect(tp.searchsorted(x1, 3, sorter=sorter), 1)
    expect(tp.searchsorted(x1, [0, 9, 4], sorter=sorter), [0, 3, 2])
    expect(tp.searchsorted(np.array([1, 2], np.int32), 1.5), 1)
    expect(tp.searchsorted(np.array([1.0, 2.0]), np.array([2], np.int8), side="right"), [2])
    expect(tp.lower_bound([1, 2, 2], [2]), [1])
    expect(tp.upper_bound([1, 2, 2], [2]), [3])


M = np.zeros((2, 3), np.float32)
BAD = [
    (lambda: tp.searchsorted(1.0, M), ShapeError, "sorted_sequence must have at least rank 1"),
    (lambda: tp.searchsorted(M, M[:1]), ShapeError, "must have rank 1, or the sizes of values"),
    (lambda: tp.searchsorted(M, 1.0), ShapeError, "must have rank 1, or the sizes of values"),
    (lambda: tp.searchsorted(M[0], M, side="up"), ArgumentError, "one of 'left', 'right', got"),
    (lambda: tp.searchsorted(M, M, sorter=[0]), ArgumentError, "x1 and sorter must"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
