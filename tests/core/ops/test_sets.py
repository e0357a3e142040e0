"""Sets against dictionaries and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same

import tensorplug as tp
from tensorplug.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

NAN = np.nan
SAMPLES = {
    "float32": np.array([[3, 1, -0.0], [0.0, 3, 2]], np.float32),
    "float16": np.array([NAN, 1, NAN, 1], np.float16),
    "int64": np.array([[[2], [-1]], [[2], [7]]], np.int64),
    "uint8": np.array([255, 0, 255], np.uint8),
    "bool": np.array([True, False, True]),
    "complex64": np.array([1 + 2j, 1 + 1j, 0, 1 + 2j], np.complex64),
    "rank 0": np.array(5.0),
    "empty": np.zeros((0, 3), np.int32),
    "long": np.random.default_rng(1).integers(0, 50, 5000).astype(np.float32),
}


@pytest.mark.parametrize("what", SAMPLES)
def test_the_standards_functions(what):
    x = SAMPLES[what]
    values, indices, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    found = tp.unique_all(x)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    same(found.values, values, x.dtype.name)
    same(found.indices, indices, "int32")
    same(found.inverse_indices, inverse.reshape(x.shape), "int32")
    same(found.counts, counts, "int32")
    same(tp.unique_values(x), values, x.dtype.name)
    counted, inverted = tp.unique_counts(x), tp.unique_inverse(x)
    assert counted._fields == ("values", "counts")
    assert inverted._fields == ("values", "inverse_indices")
    same(counted.counts, counts, "int32")
    same(inverted.inverse_indices, inverse.reshape(x.shape), "int32")


UNIQUE = {  # x, axis, values, indices
    "columns": ([[1, 1, 2], [0, 0, 2]], 1, [[1, 2], [0, 2]], [0, 0, 1]),
}


@pytest.mark.parametrize("what", UNIQUE)
def test_tensorflows_unique(what):
    x, axis, values, indices = UNIQUE[what]
    found = tp.unique(x, axis=axis)
    assert found._fields == ("values", "indices")
    same(found.values, values, "int32")
    same(found.indices, indices, "int32")
    by_name = tp.run_kernel("Unique", {"x": x}, {"axis": axis})
    same(by_name[1], indices, "int32")


def test_strings():
    words = ["b", "a", "b", ""]
    assert tp.unique(words).values.tolist() == ["b", "a", ""]
    found = tp.unique_all([words, words])
    assert found.values.tolist() == ["b", "a", ""]
    same(found.indices, [0, 1, 3], "int32")
    same(found.counts, [4, 2, 2], "int32")
    same(tp.isin(words, ["a", "x"]), [False, True, False, False], "bool")
    assert tp.setdiff1d(words, ["b"]).values.tolist() == ["a", ""]


MEMBERS = [
    ([[3, 1], [2, 5]], [1, 2], [[False, True], [True, False]]),
    ([1.0, NAN, -0.0], [NAN, 0.0], [False, False, True]),
    ([1.5, 2.0], [2], [False, True]),
    ([1, 2], [], [False, False]),
    (2, [[1, 2]], True),
    ([1, 2], 2, [False, True]),
    ([True, False], [True], [True, False]),
    (np.array([1j, complex(0, NAN)]), [1j, complex(0, NAN)], [True, False]),
    (np.array([300, 44], np.int16), np.array([44], np.uint8), [False, True]),
]


@pytest.mark.parametrize(("x1", "x2", "wanted"), MEMBERS)
def test_members(x1, x2, wanted):
    same(tp.isin(x1, x2), wanted, "bool")
    same(tp.isin(x1, x2, invert=True), np.logical_not(wanted), "bool")


def test_differences():
    found = tp.setdiff1d([1, 2, 3, 4, 5, 2, 6], [2, 4, 9])
    assert found._fields == ("values", "indices")
    same(found.values, [1, 3, 5, 6], "int32")
    same(found.indices, [0, 2, 4, 6], "int32")
    same(tp.setdiff1d(np.array([1, 1], np.int8), [3.0]).values, [1, 1], "int8")


BAD = [
    (lambda: tp.unique(3), ShapeError, "Unique.*axis 0"),
    (lambda: tp.unique([1], axis=1), ShapeError, "Unique.*axis.* 1"),
    (lambda: tp.isin(["a"], [1]), DTypeError, "isin: string and int32 have no common dtype"),
    (lambda: tp.setdiff1d([[1]], [1]), ShapeError, "setdiff1d: x and y must have rank 1, got"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
