"""Running sums and products, and differences of neighbours: dtypes, first elements, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([[3, -1, 2, 5], [0, 4, -2, 1], [7, 7, 0, -3]], np.int32)


WIDENED = {
    "bool": "int32",
    "int8": "int32",
    "int16": "int32",
    "int64": "int64",
    "uint8": "uint32",
    "uint16": "uint32",
    "uint64": "uint64",
    "float16": "float16",
    "complex128": "complex128",
}


@pytest.mark.parametrize(("given", "wide"), WIDENED.items())
def test_the_standards_dtypes(given, wide):
    x = np.array([1, 0, 1, 1], given)
    same(tp.cumulative_sum(x), [1, 1, 2, 3], wide)
    same(tp.cumulative_prod(x), [1, 0, 0, 0], wide)
    same(tp.cumulative_sum(x, dtype="float64"), [1, 1, 2, 3], "float64")


def test_the_standards_initial_element():
    same(tp.cumulative_sum(X, axis=1, include_initial=True)[:, 0], [0, 0, 0], "int32")
    same(tp.cumulative_prod(X, axis=-2, include_initial=True)[0], [1, 1, 1, 1], "int32")
    got = tp.cumulative_sum(X, axis=1, include_initial=True)
    same(got[:, 1:], np.cumsum(X, axis=1), "int32")
    same(tp.cumulative_sum(np.zeros((0,), np.float32), include_initial=True), [0], "float32")


DIFFERENCES = [
    ({}, {}),
    ({"n": 2}, {"n": 2}),
    ({"n": 0}, {"n": 0}),
    ({"axis": 0}, {"axis": 0}),
    ({"n": 9}, {"n": 9}),
    ({"prepend": 4}, {"prepend": 4}),
    ({"append": X[:, :2], "n": 2}, {"append": X[:, :2], "n": 2}),
    ({"axis": 0, "prepend": X[:1], "append": X}, {"axis": 0, "prepend": X[:1], "append": X}),
]


@pytest.mark.parametrize(("given", "wanted"), DIFFERENCES)
def test_differences_as_numpy_has_them(given, wanted):
    same(tp.diff(X, **given), np.diff(X, **wanted), "int32")


BAD = [
    (lambda: tp.cumsum(1.0), ShapeError, "Cumsum.*axis 0"),
    (lambda: tp.cumsum(X, axis=2), ShapeError, "Cumsum.*axis.* 2"),
    (lambda: tp.cumprod(X, exclusive=1), ArgumentError, "'exclusive': must be True or False"),
    (lambda: tp.cumulative_sum(X), ArgumentError, "cumulative_sum: axis is required"),
    (lambda: tp.cumulative_prod(1), ShapeError, "cumulative_prod: x must have at least r"),
    (lambda: tp.diff(X, n=-1), ArgumentError, "diff: n must not be negative, got -1"),
    (lambda: tp.diff(X, axis=2), ShapeError, "diff: axis 2"),
    (lambda: tp.diff(5.0), ShapeError, "diff: x must have at least rank 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_no_differences_are_x_without_its_ends():
    x = tp.asarray([1.0, 2.0, 4.0])
    for more in ({}, {"prepend": 5.0}, {"append": [1.0, 2.0]}):
        np.testing.assert_array_equal(tp.diff(x, 0, **more).numpy(), [1, 2, 4])
