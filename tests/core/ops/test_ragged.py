"""Ragged tensors: results of the public functions, dtypes, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError
from tensorplug.testing import isolated_engine

FLAT = [[0, 3, 3, 7, 9]]
VALUES = np.arange(1, 10, dtype=np.float32) / 10


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    """Run natively, or on the host."""
    with isolated_engine(request.param):
        yield request.param


def expect(actual, expected, dtype="float32"):
    wanted = np.asarray(expected)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=1e-6)


def splits(lists):
    return [np.array(listed, dtype=np.int32) for listed in lists]


# Gathering ---------------------------------------------------------------------------------

GATHER = {  # splits, values, indices; splits, values
    "rows": (FLAT, VALUES, [2, 1, 0, 3], [[0, 4, 4, 7, 9]], [4, 5, 6, 7, 1, 2, 3, 8, 9]),
}


@pytest.mark.parametrize("what", GATHER)
def test_gather(what, backend):
    """TensorFlow.js's own cases."""
    given, values, indices, ends, picked = GATHER[what]
    found = tp.ragged.ragged_gather(splits(given), values, indices)
    assert found._fields == ("output_nested_splits", "output_dense_values")
    assert len(found.output_nested_splits) == len(ends)
    for split, expected in zip(found.output_nested_splits, ends, strict=True):
        expect(split, expected, "int32")
    expect(found.output_dense_values, np.array(picked) / 10)
    by_name = tp.run_kernel(
        "RaggedGather",
        {"params_nested_splits": given, "params_dense_values": values, "indices": indices},
        {"output_ragged_rank": len(ends)},
    )
    expect(by_name[-1], np.array(picked) / 10)


def test_gathered_splits_keep_their_dtype(backend):
    found = tp.ragged.ragged_gather([np.array([0, 1, 2])], [True, False], [1])
    expect(found.output_nested_splits[0], [0, 1], "int64")
    expect(found.output_dense_values, [False], "bool")


@pytest.mark.usefixtures("on_the_cpu")
def test_strings_in_rows():
    found = tp.ragged.ragged_gather(splits([[0, 1, 3]]), ["a", "b", "c"], [1, 0])
    assert found.output_dense_values.tolist() == ["b", "c", "a"]
    dense = tp.ragged.ragged_tensor_to_tensor(
        -1, ["a", "b", "c"], "-", splits([[0, 1, 3]]), ["ROW_SPLITS"]
    )
    assert dense.tolist() == [["a", "-"], ["b", "c"]]


# Ranges ------------------------------------------------------------------------------------


def test_ranges(backend):
    found = tp.ragged.ragged_range([0, 5, 8, 5], [8, 7, 8, 1], [2, 1, 1, -1])
    assert found._fields == ("rt_nested_splits", "rt_dense_values")
    expect(found.rt_nested_splits, [0, 4, 6, 6, 10], "int32")
    expect(found.rt_dense_values, [0, 2, 4, 6, 5, 6, 5, 4, 3, 2], "int32")
    found = tp.ragged.ragged_range([0.0, 1.0], 2.0, 0.1)
    expect(found.rt_nested_splits, [0, 20, 30], "int32")
    expect(found.rt_dense_values, [*np.arange(20) * 0.1, *1 + np.arange(10) * 0.1])
    assert not tp.ragged.ragged_range(5, 5).rt_dense_values.size


# To a dense tensor -------------------------------------------------------------------------

DENSE = {  # shape, values, partitions, types, result
    "cut": ([-1, 2], FLAT, ["ROW_SPLITS"], [[1, 2], [0, 0], [4, 5], [8, 9]]),
}


@pytest.mark.parametrize("what", DENSE)
def test_to_tensor(what, backend):
    """TensorFlow.js's own cases, mostly."""
    shape, partitions, kinds, expected = DENSE[what]
    found = tp.ragged.ragged_tensor_to_tensor(shape, VALUES * 10, 0, splits(partitions), kinds)
    expect(found, expected)


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
