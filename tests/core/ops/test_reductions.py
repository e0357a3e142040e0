"""The standard's reductions: dtypes and positions; and corners that TensorFlow.js has."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same

import tensorplug as tp
from tensorplug.errors import ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


WIDENED = {
    "bool": "int32",
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint32",
    "uint16": "uint32",
    "uint32": "uint32",
    "uint64": "uint64",
    "float16": "float16",
    "float32": "float32",
    "complex64": "complex64",
}


@pytest.mark.parametrize(("given", "wide"), WIDENED.items())
def test_sums_and_products_are_wide_enough(given, wide):
    most = 1 if given == "bool" else 100
    x = np.array([[most, most], [most, 1]], given)
    same(tp.sum(x), 3 * most + 1, wide)
    same(tp.prod(x, axis=0), [most * most, most], wide)
    same(tp.sum(x, dtype="float64", keepdims=True), [[3 * most + 1]], "float64")
    same(tp.sum(tp.asarray(x), axis=1), [2 * most, most + 1], wide)


def test_booleans_have_an_order_and_are_added_as_numbers():
    b = np.array([[True, False], [True, True]])
    same(tp.run_kernel("Sum", {"x": b}, {"axis": 0}), [2, 1], "int32")
    same(tp.run_kernel("Prod", {"x": b}, {"axis": 0}), [1, 0], "int32")
    same(tp.run_kernel("Mean", {"x": b}, {}), 0.75, "float32")
    same(tp.run_kernel("Max", {"x": b}, {"reduction_indices": 1}), [True, True], "bool")
    same(tp.run_kernel("Min", {"x": b}, {"axis": -1}), [False, True], "bool")
    same(tp.run_kernel("ArgMin", {"x": b}, {"axis": 1}), [1, 0], "int32")
    same(tp.run_kernel("ArgMax", {"x": b}, {}), [0, 1], "int32")


def test_the_place_of_the_smallest():
    x = np.array([[3, 1, 1], [0, 5, -2]], np.float32)
    same(tp.argmin(x), 5, "int32")
    same(tp.argmin(x, axis=0), [1, 0, 1], "int32")
    same(tp.argmin(x, axis=-1, keepdims=True), [[1], [2]], "int32")
    same(tp.argmin(x, keepdims=True), [[5]], "int32")
    same(tp.argmin([1.0, np.nan, -5.0, np.nan]), 1, "int32")
    same(tp.argmin(np.zeros((0, 2)), axis=1), np.zeros(0), "int32")
    for axis in (0, None):
        with pytest.raises(ShapeError, match=r"ArgMin.*reduced axes must not be empty"):
            tp.argmin(np.zeros((0, 2)), axis=axis)
