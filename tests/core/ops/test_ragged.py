"""Ragged tensors: strings in rows, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

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


BAD = {
    "index": (
        lambda: tp.ragged.ragged_gather(FLAT, VALUES, [[2], [10]]),
        OutOfRangeError,
        r"indices\[1, 0\] must be in \[0, 4\), got 10",
    ),
    "descending": (
        lambda: tp.ragged.ragged_gather([[0, 5, 3, 9]], VALUES, [0]),
        ArgumentError,
        r"params_nested_splits\[0\] must be ascending, but element 2 is 3 after 5",
    ),
    "past the values": (
        lambda: tp.ragged.ragged_gather([[0, 10]], VALUES, [0]),
        ArgumentError,
        "end at 10, but there are 9 values to split",
    ),
    "no splits": (
        lambda: tp.ragged.ragged_gather([], VALUES, [0]),
        ArgumentError,
        "params_nested_splits must not be empty",
    ),
    "rank": (
        lambda: tp.ragged.ragged_gather(FLAT, VALUES, [0], 2),
        ArgumentError,
        "output_ragged_rank must be 1",
    ),
    "delta": (lambda: tp.ragged.ragged_range(0, 5, 0), ArgumentError, "must not be 0"),
    "lengths": (lambda: tp.ragged.ragged_range([0, 1], [5]), ShapeError, "the same length"),
    "infinite": (lambda: tp.ragged.ragged_range(0.0, float("inf")), ArgumentError, "finite"),
    "too many": (
        lambda: tp.ragged.ragged_range(0, 2.0**40),
        ArgumentError,
        "more than 2147483647",
    ),
    "kind": (
        lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, 0, FLAT, ["ROW_LENGTHS"]),
        ArgumentError,
        "must contain only FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS, got 'ROW_LENGTHS'",
    ),
    "ids first": (
        lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, 0, FLAT, ["VALUE_ROWIDS"]),
        ArgumentError,
        "must begin with FIRST_DIM_SIZE or ROW_SPLITS",
    ),
    "values": (
        lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, 0, [[0, 8]], ["ROW_SPLITS"]),
        ArgumentError,
        "describe 8 values, but values are 9",
    ),
    "sizes": (
        lambda: tp.ragged.ragged_tensor_to_tensor([4], VALUES, 0, FLAT, ["ROW_SPLITS"]),
        ShapeError,
        "shape must have 2 sizes",
    ),
    "default": (
        lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, [1, 2], FLAT, ["ROW_SPLITS"]),
        ShapeError,
        "default_value must broadcast to the shape of a value",
    ),
}


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize("what", BAD)
def test_bad_input(what):
    call, error, message = BAD[what]
    with pytest.raises(error, match=message):
        call()
