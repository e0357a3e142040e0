"""Sparse tensors: strings in rows, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError


@pytest.mark.usefixtures("on_the_cpu")
def test_strings_in_rows():
    found = tp.sparse.sparse_fill_empty_rows([[1, 0]], ["a"], [3, 1], "")
    assert found.output_values.tolist() == ["", "a", ""]


TABLE = np.arange(1, 41, dtype=np.float32).reshape(10, 4)


ONE = ([[0, 0]], [1.0])
BAD = {
    "row": (
        lambda: tp.sparse.sparse_fill_empty_rows([[0, 0], [5, 0]], [1.0, 2], [5, 5], 0),
        OutOfRangeError,
        r"the first column of indices: element 1 must be in \[0, 5\), got 5",
    ),
    "no rows": (
        lambda: tp.sparse.sparse_fill_empty_rows(*ONE, [0, 5], 0),
        OutOfRangeError,
        r"must be in \[0, 0\)",
    ),
    "values": (
        lambda: tp.sparse.sparse_fill_empty_rows([[0, 0]], [1.0, 2], [5, 5], 0),
        ShapeError,
        r"values must have shape \[1\]",
    ),
    "default": (
        lambda: tp.sparse.sparse_fill_empty_rows(*ONE, [5, 5], [0]),
        ShapeError,
        "default_value must have rank 0",
    ),
    "elements": (
        lambda: tp.sparse.sparse_reshape([[0, 0]], [2, 3], [7]),
        ShapeError,
        r"shape \[2, 3\] has 6 elements, but new_shape \[7\] has 7",
    ),
    "two sizes missing": (
        lambda: tp.sparse.sparse_reshape([[0, 0]], [2, 3], [-1, -1]),
        ShapeError,
        "may contain one -1",
    ),
    "no divisor": (
        lambda: tp.sparse.sparse_reshape([[0, 0]], [2, 3], [-1, 4]),
        ShapeError,
        "has 6 elements, but new_shape",
    ),
    "coordinate": (
        lambda: tp.sparse.sparse_reshape([[0, 3]], [2, 3], [6]),
        OutOfRangeError,
        r"column 1 of indices: element 0 must be in \[0, 3\), got 3",
    ),
    "index": (
        lambda: tp.sparse.sparse_segment_sum(TABLE, [8, 10], [0, 0]),
        OutOfRangeError,
        r"indices: element 1 must be in \[0, 10\), got 10",
    ),
    "descending": (
        lambda: tp.sparse.sparse_segment_mean(TABLE, [8, 3, 0], [0, 1, 0]),
        ArgumentError,
        "segment_ids must be ascending, but element 2 is 0 after 1",
    ),
    "negative": (
        lambda: tp.sparse.sparse_segment_sum(TABLE, [8], [-1]),
        ArgumentError,
        "segment_ids must not be negative, got -1",
    ),
    "lengths": (
        lambda: tp.sparse.sparse_segment_sum(TABLE, [8, 1], [0]),
        ShapeError,
        "indices and segment_ids must have rank 1 and the same length",
    ),
}


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize("what", BAD)
def test_bad_input(what):
    call, error, message = BAD[what]
    with pytest.raises(error, match=message):
        call()
