"""Embedding: values, dense gradients, padding, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

RNG = np.random.default_rng(7)
TABLE = RNG.normal(size=(5, 3))


pytestmark = pytest.mark.usefixtures("on_the_cpu")


INDICES = {
    "repeated": [[1, 1, 4], [0, 4, 1]],
    "from the end": [-1, 4, -5],
    "one": 2,
    "none": np.zeros((2, 0), np.int32),
    "bytes": np.array([3, 0], np.uint8),
    "long": np.array([3, -2], np.int64),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("padding", [None, 4, -5])
@pytest.mark.parametrize("name", INDICES)
def test_values_and_gradients(name, padding, dtype):
    at, table = np.asarray(INDICES[name]), TABLE.astype(dtype)
    kept = np.ones(at.shape) if padding is None else at % 5 != padding % 5
    expected = table[at] * kept[..., None].astype(dtype)
    dy = RNG.integers(1, 9, expected.shape).astype(dtype)  # so that sums are exact
    slope = np.zeros_like(table)
    np.add.at(slope, at[kept != 0], dy[kept != 0])

    def run(table):
        y, vjp = tp.vjp(lambda t: tp.nn.embedding(t, at, padding_index=padding), table)
        return y, *vjp(tp.asarray(dy))

    for found in (run(tp.asarray(table)), tp.compile(run)(tp.asarray(table))):
        for got, right in zip(found, (expected, slope), strict=True):
            assert (got.shape, got.dtype.name) == (right.shape, dtype)
            np.testing.assert_array_equal(got.numpy(), right)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((TABLE[0], [0]), {}, ShapeError, r"must be \[rows, features\], got float64\[3\]"),
        ((TABLE, [0.5]), {}, DTypeError, r"indices must be integers, got float32\[1\]"),
        ((TABLE, [5]), {}, OutOfRangeError, "index 5 is out of range"),
        ((TABLE, [0]), {"padding_index": 5}, OutOfRangeError, "padding_index 5 is out of range"),
        ((TABLE, [0]), {"padding_index": -6}, OutOfRangeError, "padding_index -6"),
        ((TABLE, [0]), {"padding_index": True}, ArgumentError, "must be an integer, got True"),
        (([["a"]], [0]), {}, DTypeError, "table must hold numbers, got string"),
    ],
)
def test_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        tp.nn.embedding(*arguments, **options)
