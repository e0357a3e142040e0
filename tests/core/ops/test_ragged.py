"""Ragged tensors: strings in rows, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError

FLAT = [[0, 3, 3, 7, 9]]
VALUES = np.arange(1, 10, dtype=np.float32) / 10


def splits(lists):
    return [np.array(listed, dtype=np.int32) for listed in lists]


@pytest.mark.usefixtures("on_the_cpu")
def test_strings_in_rows():
    found = tp.ragged.ragged_gather(splits([[0, 1, 3]]), ["a", "b", "c"], [1, 0])
    assert found.output_dense_values.tolist() == ["b", "c", "a"]
    dense = tp.ragged.ragged_tensor_to_tensor(
        -1, ["a", "b", "c"], "-", splits([[0, 1, 3]]), ["ROW_SPLITS"]
    )
    assert dense.tolist() == [["a", "-"], ["b", "c"]]


BAD = {  # error: call, what the message says
    OutOfRangeError: [
        (
            lambda: tp.ragged.ragged_gather(FLAT, VALUES, [[2], [10]]),
            r"indices\[1, 0\] must be in \[0, 4\), got 10",
        ),
    ],
    ArgumentError: [
        (
            lambda: tp.ragged.ragged_gather([[0, 5, 3, 9]], VALUES, [0]),
            r"params_nested_splits\[0\] must be ascending, but element 2 is 3 after 5",
        ),
        (
            lambda: tp.ragged.ragged_gather([[0, 10]], VALUES, [0]),
            "end at 10, but there are 9 values to split",
        ),
        (
            lambda: tp.ragged.ragged_gather([], VALUES, [0]),
            "params_nested_splits must not be empty",
        ),
        (lambda: tp.ragged.ragged_gather(FLAT, VALUES, [0], 2), "output_ragged_rank must be 1"),
        (lambda: tp.ragged.ragged_range(0, 5, 0), "must not be 0"),
        (lambda: tp.ragged.ragged_range(0.0, float("inf")), "finite"),
        (lambda: tp.ragged.ragged_range(0, 2.0**40), "more than 2147483647"),
        (
            lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, 0, FLAT, ["ROW_LENGTHS"]),
            "must contain only FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS, got 'ROW_LENGTHS'",
        ),
        (
            lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, 0, FLAT, ["VALUE_ROWIDS"]),
            "must begin with FIRST_DIM_SIZE or ROW_SPLITS",
        ),
        (
            lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, 0, [[0, 8]], ["ROW_SPLITS"]),
            "describe 8 values, but values are 9",
        ),
    ],
    ShapeError: [
        (lambda: tp.ragged.ragged_range([0, 1], [5]), "the same length"),
        (
            lambda: tp.ragged.ragged_tensor_to_tensor([4], VALUES, 0, FLAT, ["ROW_SPLITS"]),
            "shape must have 2 sizes",
        ),
        (
            lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, [1, 2], FLAT, ["ROW_SPLITS"]),
            "default_value must broadcast to the shape of a value",
        ),
    ],
}


test_bad_input = pytest.mark.usefixtures("on_the_cpu")(refused(BAD, regex=True))
