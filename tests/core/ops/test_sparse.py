"""Sparse tensors: strings in rows, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError


@pytest.mark.usefixtures("on_the_cpu")
def test_strings_in_rows():
    found = tp.sparse.sparse_fill_empty_rows([[1, 0]], ["a"], [3, 1], "")
    assert found.output_values.tolist() == ["", "a", ""]


TABLE = np.arange(1, 41, dtype=np.float32).reshape(10, 4)


ONE = ([[0, 0]], [1.0])
BAD = {  # error: call, what the message says
    OutOfRangeError: [
        (
            lambda: tp.sparse.sparse_fill_empty_rows([[0, 0], [5, 0]], [1.0, 2], [5, 5], 0),
            r"the first column of indices: element 1 must be in \[0, 5\), got 5",
        ),
        (lambda: tp.sparse.sparse_fill_empty_rows(*ONE, [0, 5], 0), r"must be in \[0, 0\)"),
        (
            lambda: tp.sparse.sparse_reshape([[0, 3]], [2, 3], [6]),
            r"column 1 of indices: element 0 must be in \[0, 3\), got 3",
        ),
        (
            lambda: tp.sparse.sparse_segment_sum(TABLE, [8, 10], [0, 0]),
            r"indices: element 1 must be in \[0, 10\), got 10",
        ),
    ],
    ShapeError: [
        (
            lambda: tp.sparse.sparse_fill_empty_rows([[0, 0]], [1.0, 2], [5, 5], 0),
            r"values must have shape \[1\]",
        ),
        (
            lambda: tp.sparse.sparse_fill_empty_rows(*ONE, [5, 5], [0]),
            "default_value must have rank 0",
        ),
        (
            lambda: tp.sparse.sparse_reshape([[0, 0]], [2, 3], [7]),
            r"shape \[2, 3\] has 6 elements, but new_shape \[7\] has 7",
        ),
        (lambda: tp.sparse.sparse_reshape([[0, 0]], [2, 3], [-1, -1]), "may contain one -1"),
        (
            lambda: tp.sparse.sparse_reshape([[0, 0]], [2, 3], [-1, 4]),
            "has 6 elements, but new_shape",
        ),
        (
            lambda: tp.sparse.sparse_segment_sum(TABLE, [8, 1], [0]),
            "indices and segment_ids must have rank 1 and the same length",
        ),
    ],
    ArgumentError: [
        (
            lambda: tp.sparse.sparse_segment_mean(TABLE, [8, 3, 0], [0, 1, 0]),
            "segment_ids must be ascending, but element 2 is 0 after 1",
        ),
        (
            lambda: tp.sparse.sparse_segment_sum(TABLE, [8], [-1]),
            "segment_ids must not be negative, got -1",
        ),
    ],
}


test_bad_input = pytest.mark.usefixtures("on_the_cpu")(refused(BAD, regex=True))
