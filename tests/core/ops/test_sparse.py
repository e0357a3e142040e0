"""Sparse tensors and sums of picked rows: public functions, overflows, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError
from tensorplug.testing import isolated_engine


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    """Run natively, or on the host."""
    with isolated_engine(request.param):
        yield request.param


def expect(actual, expected, dtype="float32"):
    wanted = np.asarray(expected)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=1e-6)


# Empty rows --------------------------------------------------------------------------------

FILL = {  # indices, values, shape; indices, values, empty rows, places
    "some": (
        [[0, 0], [1, 0], [1, 3], [1, 4], [3, 2], [3, 3]],
        [0.0, 10, 13, 14, 32, 33],
        [5, 6],
        [[0, 0], [1, 0], [1, 3], [1, 4], [2, 0], [3, 2], [3, 3], [4, 0]],
        [0, 10, 13, 14, -1, 32, 33, -1],
        [False, False, True, False, True],
        [0, 1, 2, 3, 5, 6],
    ),
}


@pytest.mark.parametrize("what", FILL)
def test_empty_rows_are_filled(what, backend):
    """TensorFlow.js's own cases."""
    indices, values, shape, places, filled, empty, back = FILL[what]
    found = tp.sparse.sparse_fill_empty_rows(indices, values, shape, -1)
    assert found._fields == (
        "output_indices",
        "output_values",
        "empty_row_indicator",
        "reverse_index_map",
    )
    expect(found.output_indices, places, "int32")
    expect(found.output_values, filled)
    expect(found.empty_row_indicator, empty, "bool")
    expect(found.reverse_index_map, back, "int32")


@pytest.mark.usefixtures("on_the_cpu")
def test_strings_in_rows():
    found = tp.sparse.sparse_fill_empty_rows([[1, 0]], ["a"], [3, 1], "")
    assert found.output_values.tolist() == ["", "a", ""]


# Other shapes ------------------------------------------------------------------------------


def test_reshape(backend):
    places = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]]
    found = tp.sparse.sparse_reshape(places, [2, 3, 6], [9, -1])
    assert found._fields == ("output_indices", "output_shape")
    expect(found.output_indices, [[0, 0], [0, 1], [1, 2], [4, 2], [8, 1]], "int32")
    expect(found.output_shape, [9, 4], "int32")


@pytest.mark.usefixtures("on_the_cpu")
def test_reshape_of_what_int32_does_not_count():
    far = np.array([[2**31 - 2, 2**31 - 2]])
    found = tp.sparse.sparse_reshape(far, np.array([2**31 - 1] * 2), [1, -1, 2**31 - 1, 1])
    expect(found.output_indices, [[0, 2**31 - 2, 2**31 - 2, 0]], "int64")


# Sums of rows ------------------------------------------------------------------------------

TABLE = np.arange(1, 41, dtype=np.float32).reshape(10, 4)


def test_means_of_integers_and_of_what_overflows(backend):
    data = np.array([[1, 2], [-1, -3], [6, 7], [2**31 - 1, -(2**31)]], np.int32)
    expect(tp.sparse.sparse_segment_mean(data, [1, 2], [0, 0]), [[2, 2]], "int32")
    expect(tp.sparse.sparse_segment_mean(data, [0, 1, 1], [0, 0, 0]), [[0, -1]], "int32")
    expect(tp.sparse.sparse_segment_mean(data, [3, 3], [0, 0]), data[3:], "int32")


@pytest.mark.usefixtures("on_the_cpu")
def test_half_precision_means_do_not_overflow():
    for width in (1, 8, 20):
        large = np.full((2, width), 60000, np.float16)
        expect(tp.sparse.sparse_segment_mean(large, [0, 1], [0, 0]), large[:1], "float16")


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
