"""Dtypes for storage: their numbers by their bits, rounding, movement, and what is refused."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from tests.core.support.engines import MemoryBackend
from tests.core.support.storage_formats import (
    FLOATS,
    MOVES,
    STORAGE,
    TOO_LARGE,
    WHOLE,
    moving,
    nearest,
    numbers,
)

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
)

INF, NAN = math.inf, math.nan


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def stored(dtype: dt.DType) -> tp.Tensor:
    """Return all bit patterns."""
    return tp.asarray(np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_stand_for_what_their_bits_say(dtype):
    expected = numbers(dtype)
    for wide in ("float32", "float64"):
        result = tp.astype(stored(dtype), wide).numpy()
        assert result.dtype == wide
        np.testing.assert_array_equal(result, expected)
        signed = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(result[signed]), np.signbit(expected[signed]))
    finite = expected[np.isfinite(expected)]
    assert (dtype.min, dtype.max) == (finite.min(), finite.max())
    assert dtype.eps == min(x for x in finite if x > 1) - 1


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.name != "float8_e8m0fnu"], ids=str)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_floats_are_rounded_once_to_the_nearest_even(dtype, source):
    finite = np.unique(numbers(dtype)[np.isfinite(numbers(dtype))])
    middles = (finite[1:] + finite[:-1]) / 2
    rng = np.random.default_rng(0)
    given = np.concatenate(
        [finite, middles, rng.uniform(-1, 1, 200) * finite.max(), rng.normal(size=200)]
    ).astype(source)
    toward = [np.nextafter(middles.astype(source), to).astype(source) for to in (-INF, INF)]
    given = np.concatenate([given, *toward])
    expected = np.array([nearest(dtype, float(x)) for x in given], np.float32)
    result = tp.astype(tp.astype(given, dtype), "float32").numpy()
    np.testing.assert_array_equal(result, expected)


def test_float64_is_not_rounded_to_float32_first():
    given = np.array([1.0625 + 2.0**-40, 1.0625 - 2.0**-40, 1.0625])
    assert tp.astype(given, "float8_e4m3fn").tolist() == [1.125, 1.0, 1.0]


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_small_powers_are_the_nearest(source):
    given = np.array([0.01, 1, 1.01, 1.49, 1.5, 1.99, 2, 2.99, 3]) * 2.0**-127
    result = tp.astype(tp.astype(given.astype(source), "float8_e8m0fnu"), "float64").numpy()
    np.testing.assert_array_equal(result / 2.0**-127, [1, 1, 1, 1, 2, 2, 2, 2, 4])


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_numbers_that_do_not_fit(dtype):
    x = np.float32([1e9, -INF, NAN])
    for saturate, expected in zip((False, True), TOO_LARGE[dtype.name], strict=True):
        result = tp.astype(x, dtype, saturate=saturate)
        assert result.dtype is dtype
        np.testing.assert_array_equal(tp.astype(result, "float32").numpy(), np.float32(expected))


SATURATED = [  # dtype, numbers, dtype, numbers
    ("float32", [127.9, 128, -128.9, -129, 300, NAN], "int8", [127, 127, -128, -128, 127, 0]),
    ("float32", [-0.5, -1, 2.0**32, 4294967040], "uint32", [0, 0, 2**32 - 1, 4294967040]),
    ("float32", [2.0**31, -(2.0**31), INF, -INF], "int32", [2**31 - 1, -(2**31)] * 2),
    ("float16", [INF, 65504, -INF], "int32", [2**31 - 1, 65504, -(2**31)]),
    ("int32", [300, -300, 5], "int8", [127, -128, 5]),
    ("int32", [300, -300, 5], "uint8", [255, 0, 5]),
    ("uint8", [200, 3], "int8", [127, 3]),
    ("int8", [-5, 100], "uint64", [0, 100]),
    ("int64", [2**62, -(2**62)], "float16", [65504, -65504]),
    ("int32", [10**6, -3, 0], "float8_e4m3fn", [448, -3, 0]),
    ("float32", [INF, -INF], "float64", [np.finfo("f8").max, np.finfo("f8").min]),
    ("float64", [1e300, -1e300, NAN], "float32", [np.finfo("f4").max, np.finfo("f4").min, NAN]),
    ("bool", [True, False], "int4", [1, 0]),
    ("float8_e5m2", [57344, -3], "float8_e4m3fn", [448, -3]),
    ("int8", [100, -100, 5], "int4", [7, -8, 5]),
]


@pytest.mark.parametrize(("source", "given", "target", "wanted"), SATURATED)
def test_saturation(source, given, target, wanted):
    result = tp.astype(tp.asarray(given, dtype=source), target, saturate=True)
    assert result.dtype.name == target
    expected = np.array(wanted, tp.asarray(wanted, dtype=target).numpy().dtype)
    np.testing.assert_array_equal(result.numpy(), expected)


def test_saturate_is_for_real_numbers():
    with pytest.raises(DTypeError, match="saturate is for real numbers"):
        tp.astype(tp.ones((1,), dtype="complex64"), "int8", saturate=True)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_integers_wrap_and_floats_are_truncated(dtype):
    given = np.arange(-40, 40)
    size = 1 << dtype.bits
    expected = (given - dtype.min) % size + dtype.min
    for source in ("int8", "int32", "float32"):
        result = tp.astype(given.astype(source), dtype)
        assert result.tolist() == expected.tolist()
    halves = tp.astype(np.float32([0.9, -0.9, 1.5]), dtype)
    assert halves.tolist() == [0, 0, 1]


# Movement --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_movement_keeps_all_bits(dtype, name):
    here, there = MOVES[name]
    array = moving(dtype)
    expected = there(array.view(np.uint8))
    result = here(tp.asarray(array))
    assert (result.dtype, result.shape) == (dtype, expected.shape)
    np.testing.assert_array_equal(result.numpy().view(np.uint8), expected)


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_making_reading_and_showing(dtype):
    assert getattr(tp, dtype.name) is dtype
    assert tp.asarray(1, dtype=dtype.name).dtype is dtype
    ones = tp.full((2,), 1, dtype=dtype)
    assert (ones.tolist(), ones[0].item(), ones.dtype) == ([1, 1], 1, dtype)
    assert type(ones[0].item()) is (int if dtype in dt.WHOLE else float)
    assert repr(ones) == f"Tensor([1, 1], dtype={dtype}, device='cpu')"
    assert tp.asarray(ones.numpy()).dtype is dtype
    assert [dt.of(dtype.numpy), dt.of(dtype.numpy.type)] == [dtype, dtype]
    assert dtype.numpy.itemsize == dtype.itemsize == 1
    padded = tp.pad(ones, [(1, 0)], 1)
    assert (padded.tolist(), padded.dtype) == ([1, 1, 1], dtype)
    assert tp.zeros_like(padded).dtype is dtype
    if dtype in dt.WHOLE:
        with pytest.raises(ArgumentError, match=f"fit into {dtype}"):
            tp.asarray(99, dtype=dtype)


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_questions_about_them(dtype):
    about = (tp.iinfo if dtype in dt.WHOLE else tp.finfo)(dtype)
    assert (about.bits, about.min, about.max) == (dtype.bits, dtype.min, dtype.max)
    for kind in ("bool", "integral", "real floating", "numeric"):
        assert not tp.isdtype(dtype, kind)  # the standard's kinds are for arithmetic
    assert tp.result_type(dtype, dtype) is dtype
    assert dtype.name not in tp.__array_namespace_info__().dtypes()


# What is refused -------------------------------------------------------------------------

REFUSED = {
    "addition": (lambda x: x + x, r"Add.*convert it with astype"),
    "a number": (lambda x: x + 1, r"Add.*convert it with astype"),
    "a float": (lambda x: x * 2.0, "no common dtype; convert one of them with astype"),
    "another dtype": (lambda x: x + tp.ones((2, 2)), "no common dtype; convert"),
    "negation": (lambda x: -x, "float8_e4m3fn is for storage: convert it with astype"),
    "product": (lambda x: x @ x, "is for storage"),
    "sum": (tp.sum, "is for storage"),
    "exponential": (tp.exp, "is for storage"),
    "comparison": (lambda x: tp.equal(x, x), "is for storage"),
    "order": (tp.sort, "is for storage"),
    "set": (tp.unique_values, "is for storage"),
    "range": (lambda x: tp.arange(3, dtype=x.dtype), "convert the result with astype"),
    "draw": (lambda x: tp.random.normal(tp.random.key(0), (2,), dtype=x.dtype), "floating"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arithmetic_is_refused_with_advice(name):
    call, text = REFUSED[name]
    with pytest.raises(DTypeError, match=text):
        call(tp.ones((2, 2), dtype="float8_e4m3fn"))


def test_a_device_says_which_it_stores():
    tp.register_backend("small", lambda: MemoryBackend("small", dt.FIXED))
    try:
        with tp.use_backend("small"), pytest.raises(DTypeError, match="float8_e5m2"):
            tp.asarray([1.0], dtype="float8_e5m2")
    finally:
        tp.remove_backend("small")


def test_a_backend_may_declare_more():
    x = tp.asarray([1.5, -2.0], dtype="float8_e4m3fn")

    def negative(x):
        return (-x.astype(np.float32)).astype(x.dtype)

    storing = [*dt.NUMERIC, dt.float8_e4m3fn]
    with tp.register_kernel("Neg", "cpu", negative, dtypes=storing, override=True):
        result = tp.negative(x)
        assert (result.tolist(), result.dtype) == ([-1.5, 2.0], x.dtype)
        with pytest.raises(DTypeError, match="float8_e5m2 is for storage"):
            tp.negative(tp.ones((1,), dtype="float8_e5m2"))
    with pytest.raises(DTypeError, match="float8_e4m3fn is for storage"):
        tp.negative(x)


def test_ml_dtypes_is_imported_when_one_is_used():
    code = """
import sys
import tensorplug as tp

with tp.use_backend("cpu"):
    x = tp.quantize(tp.ones((2, 2)), 0.5)
    tp.quantized_matmul(x, x, 0.5)
    assert "ml_dtypes" not in sys.modules
    tp.astype(x, "int4")
assert "ml_dtypes" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
