"""Convolutions of sequences, against sums of products."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

from .comparing import near

RANDOM = np.random.default_rng(11)
DTYPES = ["bool", "int8", "int32", "uint16", "float32", "float64", "complex64", "complex128"]


def draw(shape, dtype):
    x = RANDOM.uniform(-9, 9, shape)
    if dtype.startswith("complex"):
        return (x + 1j * RANDOM.uniform(-9, 9, shape)).astype(dtype)
    if dtype == "bool":
        return x > 5
    return (np.abs(x) if dtype.startswith("uint") else x).astype(dtype)


def convolved(a, v):
    """Add the products of each pair of elements at the sum of their places."""
    wide = {"b": np.int64, "i": np.int64, "u": np.int64, "f": np.longdouble, "c": np.clongdouble}
    out = np.zeros(a.size + v.size - 1, wide[np.result_type(a, v).kind])
    for at, number in enumerate(v.tolist()):
        out[at : at + a.size] += a.astype(out.dtype) * number
    return out


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 3), (3, 5), (4, 4), (6, 2), (7, 4), (300, 150)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_convolutions(dtype, sizes, mode):
    a, v = draw(sizes[0], dtype), draw(sizes[1], dtype)
    full = convolved(a, v)
    longer, shorter = max(sizes), min(sizes)
    first = {"full": 0, "same": (shorter - 1) // 2, "valid": shorter - 1}[mode]
    count = {"full": full.size, "same": longer, "valid": longer - shorter + 1}[mode]
    near(tp.convolve(a, v, mode), full[first : first + count], dtype, terms=1000)


def test_convolutions_of_two_dtypes_and_numbers():
    near(tp.convolve([1, 2], np.array([0.5, 1.0])), [0.5, 2, 2], "float64")
    near(tp.convolve(np.array([1j]), [1, 2]), [1j, 2j], "complex128")
    near(tp.convolve(2.0, [1.0, 3.0]), [2, 6], "float32")
    near(tp.convolve(np.ones(3, np.float16), np.ones(2, np.float16)), [1, 2, 2, 1], "float16")
    compiled = tp.compile(tp.convolve)
    near(compiled(tp.asarray([1, 2, 3]), tp.asarray([0, 1])), [0, 1, 2, 3], "int32")
    near(compiled(tp.asarray([1.0, 2]), tp.asarray([0.0, 1])), [0, 1, 2], "float32")


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_gradients_of_convolutions(mode):
    operands = [RANDOM.uniform(-1, 1, 5), RANDOM.uniform(-1, 1, 3)]
    check_grads(lambda a, v: tp.sum(tp.convolve(a, v, mode) ** 2), operands, order=2)
    check_grads(
        lambda a, v: tp.sum(tp.abs(tp.convolve(tp.complex(a, a * a), v, mode)) ** 2),
        operands,
        order=2,
    )


BAD = [
    (
        lambda: tp.convolve([], [1.0]),
        ShapeError,
        "convolve: a must have rank 1 and at least one el",
    ),
    (lambda: tp.convolve([1.0], [[1.0]]), ShapeError, "convolve: v must have rank 1"),
    (
        lambda: tp.convolve([1.0], [1.0], "circular"),
        ArgumentError,
        "convolve: mode must be one of 'full'",
    ),
    (lambda: tp.convolve(["a"], [1.0]), DTypeError, "convolve: a must hold numbers"),
    (lambda: tp.convolve(np.ones(2, "u8"), np.ones(2, "i8")), DTypeError, "no common dtype"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
