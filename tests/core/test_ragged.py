"""Ragged tensors against TensorFlow.js's cases, nested lists and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError
from tensorplug.testing import isolated_engine

FLAT = [[0, 3, 3, 7, 9]]
DEEP = [[0, 1, 3, 3, 5, 6], [0, 0, 2, 3, 5, 8, 9]]
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
    "two splits": (
        DEEP,
        VALUES,
        [2, 1, 0, 2, 3],
        [[0, 0, 2, 3, 3, 5], [0, 2, 3, 3, 5, 8]],
        [1, 2, 3, 4, 5, 6, 7, 8],
    ),
    "a table": (
        FLAT,
        VALUES,
        [[2, 1], [0, 3]],
        [[0, 2, 4], [0, 4, 4, 7, 9]],
        [4, 5, 6, 7, 1, 2, 3, 8, 9],
    ),
    "one row": (FLAT, VALUES, 2, [], [4, 5, 6, 7]),
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


@pytest.mark.usefixtures("on_the_cpu")
def test_ranges_of_the_largest_integers():
    """TensorFlow.js counts in float64, where these do not differ."""
    low, high = np.int64(-(2**63)), np.int64(2**63 - 1)
    found = tp.ragged.ragged_range(np.array([high - 2, low]), high, np.array([1, 2**62]))
    expect(found.rt_nested_splits, [0, 2, 6], "int32")
    wanted = [high - 2, high - 1, low, -(2**62), 0, 2**62]
    assert found.rt_dense_values.tolist() == [int(item) for item in wanted]


# To a dense tensor -------------------------------------------------------------------------

DENSE = {  # shape, values, partitions, types, result
    "ids": (
        [4, 4],
        [4, [0, 0, 0, 2, 2, 2, 2, 3, 3]],
        ["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
        [[1, 2, 3, 0], [0] * 4, [4, 5, 6, 7], [8, 9, 0, 0]],
    ),
    "splits": (
        [4, 4],
        FLAT,
        ["ROW_SPLITS"],
        [[1, 2, 3, 0], [0] * 4, [4, 5, 6, 7], [8, 9, 0, 0]],
    ),
    "any shape": (
        -1,
        FLAT,
        ["ROW_SPLITS"],
        [[1, 2, 3, 0], [0] * 4, [4, 5, 6, 7], [8, 9, 0, 0]],
    ),
    "cut": ([-1, 2], FLAT, ["ROW_SPLITS"], [[1, 2], [0, 0], [4, 5], [8, 9]]),
    "three dimensions": (
        [4, 1, 2],
        DEEP,
        ["ROW_SPLITS", "ROW_SPLITS"],
        [[[0, 0]], [[1, 2]], [[0, 0]], [[4, 5]]],
    ),
}


@pytest.mark.parametrize("what", DENSE)
def test_to_tensor(what, backend):
    """TensorFlow.js's own cases, mostly."""
    shape, partitions, kinds, expected = DENSE[what]
    found = tp.ragged.ragged_tensor_to_tensor(shape, VALUES * 10, 0, splits(partitions), kinds)
    expect(found, expected)


def test_rows_of_vectors_and_a_default_of_one(backend):
    """TensorFlow.js forgets a default value that is no scalar, and takes an inner -1 for 0."""
    values = np.arange(6, dtype=np.int32).reshape(3, 2)
    found = tp.ragged.ragged_tensor_to_tensor(
        [-1, -1, -1], values, [7, 8], splits([[0, 1, 3]]), ["ROW_SPLITS"]
    )
    expect(found, [[[0, 1], [7, 8]], [[2, 3], [4, 5]]], "int32")


# Gradients ---------------------------------------------------------------------------------


def test_gradients(backend):
    weights = np.arange(1, 10, dtype=np.float32)

    def gathered(values):
        found = tp.ragged.ragged_gather(splits(FLAT), values, [2, 0, 2]).output_dense_values
        return tp.sum(found * np.arange(found.size, dtype=np.float32))

    # Row 2 comes first and again: places 0 to 3 and 7 to 10.
    expect(tp.grad(gathered)(weights), [4, 5, 6, 7, 9, 11, 13, 0, 0])

    def dense(values, default):
        found = tp.ragged.ragged_tensor_to_tensor(
            [4, 3], values, default, splits(FLAT), ["ROW_SPLITS"]
        )
        return tp.sum(found * tp.reshape(tp.arange(12.0), (4, 3)))

    of_values, of_default = tp.grad(dense, (0, 1))(weights, np.float32(2))
    expect(of_values, [0, 1, 2, 6, 7, 8, 0, 9, 10])
    expect(of_default, 3 + 4 + 5 + 11)

    def ranged(start, delta):
        values = tp.ragged.ragged_range(start, 10.0, delta).rt_dense_values
        return tp.sum(values * values)

    of_start, of_delta = tp.grad(ranged, (0, 1))(np.array([8.0, 7.0], np.float32), np.float32(1))
    expect(of_start, [2 * (8 + 9), 2 * (7 + 8 + 9)])
    expect(of_delta, 2 * 9 + 2 * (8 + 2 * 9))


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
        "params_nested_splits is an empty list",
    ),
    "rank": (
        lambda: tp.ragged.ragged_gather(FLAT, VALUES, [0], 2),
        ArgumentError,
        "output_ragged_rank must be 1 here",
    ),
    "delta": (lambda: tp.ragged.ragged_range(0, 5, 0), ArgumentError, "must not be 0"),
    "lengths": (lambda: tp.ragged.ragged_range([0, 1], [5]), ShapeError, "one length"),
    "infinite": (lambda: tp.ragged.ragged_range(0.0, float("inf")), ArgumentError, "finite"),
    "too many": (
        lambda: tp.ragged.ragged_range(0, 2.0**40),
        ArgumentError,
        "more than 2147483647",
    ),
    "kind": (
        lambda: tp.ragged.ragged_tensor_to_tensor(-1, VALUES, 0, FLAT, ["ROW_LENGTHS"]),
        ArgumentError,
        "must hold FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS, got 'ROW_LENGTHS'",
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
