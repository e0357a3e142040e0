"""Elementwise functions: dtypes, weak scalars, decimals, bounds, refusals."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


NAMES = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan"),
    *("expm1", "log1p", "log2", "log10", "reciprocal", "rsqrt"),
)


@pytest.mark.parametrize("name", NAMES)
def test_integers_become_floats(name):
    x = np.array([1, 1], np.int64)
    result = getattr(tp, name)(x)
    assert (result.dtype, result.shape) == (tp.float32, (2,))
    np.testing.assert_array_equal(result.numpy(), getattr(tp, name)(x.astype("float32")).numpy())
    assert getattr(tp, name)(tp.asarray(True)).dtype is tp.float32
    by_name = tp.run_kernel(name.capitalize(), {"x": x})
    assert by_name.dtype is tp.float32


@pytest.mark.parametrize("name", ["atan2", "hypot", "logaddexp", "copysign", "nextafter"])
def test_weak_scalars(name):
    function, x = getattr(tp, name), np.float16([1, 2])
    assert function(x, 2.5).dtype is tp.float16
    assert function(2, x).dtype is tp.float16
    assert function(np.int16([1]), 2).dtype is tp.float32
    assert function(x[:, None], np.ones(3)).type.shape == (2, 3)
    with pytest.raises(DTypeError, match="is complex64"):
        function(x, 1j)


def test_sums_of_lists():
    parts = [np.arange(6, dtype=np.float32).reshape(2, 3) * n for n in range(1, 8)]
    expect(tp.add_n(tuple(parts)), "float32", (2, 3), sum(parts))
    expect(tp.add_n([np.int32([1]), np.float16([0.5])]), "float16", (1,), [1.5])
    expect(tp.add_n([1.0, 2.0]), "float32", (), 3)
    first, second = tp.grad(lambda a, b: tp.sum(tp.add_n([a, b, a])), (0, 1))(parts[0], parts[1])
    expect(first, "float32", (2, 3), np.full((2, 3), 2))
    expect(second, "float32", (2, 3), np.ones((2, 3)))
    kept = tp.asarray(parts[0])
    tp.add_n([kept, parts[1], parts[2]])
    expect(kept, "float32", (2, 3), parts[0])


def test_exclusive_or():
    a = np.array([[True], [False]])
    expect(tp.logical_xor(a, True), "bool", (2, 1), [[False], [True]])
    with pytest.raises(DTypeError, match="LogicalXor"):
        tp.logical_xor(a, 1)


# Rounding, signs -------------------------------------------------------------------------


NUMBERS = [0.125, 0.375, -0.25, 2.675, 1234.5678, -98765.4321, 0.0, -0.0, 5.0, 15.0, 25.0, -350.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("decimals", [-3, -2, -1, 0, 1, 2, 3, 6])
def test_rounding_to_decimals(decimals, dtype):
    x = np.array([*NUMBERS, inf, -inf, nan]).astype(dtype)
    if dtype.startswith("complex"):
        x = x[:-3] + 1j * x[2::-1].repeat(4)
    with np.errstate(all="ignore"):
        expected = np.round(x, decimals)
    result = tp.round(x, decimals)
    expect(result, dtype, x.shape, expected)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(
        np.signbit(result.numpy()[finite].real), np.signbit(expected[finite].real)
    )
    expect(tp.asarray(x).round(decimals=decimals), dtype, x.shape, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers_to_tens(dtype):
    limits = np.iinfo(dtype)
    x = [0, 4, 5, 6, 15, 25, 44, 45, 50, 55, 104, 105, 115, limits.max // 10 * 10 - 5]
    x += [-number for number in x if limits.min < 0]
    array = np.array(x, dtype)
    assert array.tolist() == x
    for decimals in (-1, -2, -18):
        scale = 10**-decimals
        expected = [round(number, decimals) if scale <= limits.max else 0 for number in x]
        inside = [limits.min <= number <= limits.max for number in expected]
        found = tp.round(array, decimals)
        assert found.dtype == dt.of(dtype)
        shown = [number for number, fits in zip(found.tolist(), inside, strict=True) if fits]
        assert shown == [number for number, fits in zip(expected, inside, strict=True) if fits]
    expect(tp.round(array, 3), dtype, array.shape, array)


def test_numbers_too_large_for_decimals_stay():
    x = np.array([3e38, -1e30, 2.0**24], np.float32)
    expect(tp.round(x, 31), "float32", (3,), x)
    expect(tp.round(x.astype(np.float64), 292), "float64", (3,), x.astype(np.float64))


@pytest.mark.parametrize(
    ("x", "decimals", "message"),
    [
        ([1.5], 0.5, "round: decimals must be an integer, got 0.5"),
        ([1.5], 32, "round: decimals must be from -31 to 31 for float32, got 32"),
        (np.ones(1), -293, "round: decimals must be from -292 to 292 for float64, got -293"),
    ],
)
def test_decimals_that_are_refused(x, decimals, message):
    with pytest.raises(ArgumentError, match=message):
        tp.round(x, decimals)


# Bounds -----------------------------------------------------------------------------------

F = np.float32([-3, -0.5, 0.5, 3, nan, inf])
I = np.array([-3, 0, 5], np.int8)  # noqa: E741  # integers, beside F

CLIPPED = [  # x, min, max, values
    (F, -1, 1, [-1, -0.5, 0.5, 1, nan, 1]),
    (F, 0, None, [0, 0, 0.5, 3, nan, inf]),
    (F, None, 0.25, [-3, -0.5, 0.25, 0.25, nan, 0.25]),
    (F, None, None, F),
    (F, nan, 1, [nan] * 6),
    (F, np.float32([0, 0, 1, 1, 1, 1]), 2, [0, 0, 1, 2, nan, 2]),
    (F, np.float64(0), np.float32(1), [0, 0, 0.5, 1, nan, 1]),
    (F, -inf, np.int32(1), [-3, -0.5, 0.5, 1, nan, 1]),
    (np.float32([-inf, inf]), None, 1, [-inf, 1]),
    (np.float32([-inf, inf]), -1, None, [-1, inf]),
    (I, -1, 4, [-1, 0, 4]),
    (I, 1, None, [1, 1, 5]),
    (I, -1000, 1000, [-3, 0, 5]),
    (I, np.int32(-1000), np.int64(300), [-3, 0, 5]),
    (I, np.int32([[1], [-1]]), None, [[1, 1, 5], [-1, 0, 5]]),
]


@pytest.mark.parametrize(("x", "low", "high", "values"), CLIPPED)
def test_clip(x, low, high, values):
    expect(tp.clip(x, low, high), str(x.dtype), np.shape(values), values)
    expect(tp.asarray(x).clip(max=high, min=low), str(x.dtype), np.shape(values), values)


def test_clip_by_value_as_in_tensorflow_js():
    expect(tp.clip_by_value(F, -1, 1.5), "float32", (6,), [-1, -0.5, 0.5, 1.5, nan, 1.5])
    bounds = {"clip_value_min": 0.5, "clip_value_max": 2.75}  # kept as int32: 0 and 2
    x = tp.asarray([-1, 0, 1, 2, 3])
    expect(tp.run_kernel("ClipByValue", {"x": x}, bounds), "int32", (5,), [0, 0, 1, 2, 2])
    expect(tp.clip_by_value(np.uint8([0, 255]), -5, 300), "uint8", (2,), [0, 255])
    with pytest.raises(ArgumentError, match="'clip_value_max' is missing"):
        tp.run_kernel("ClipByValue", {"x": x}, {"clip_value_min": 0})


# Multiply-add ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [int, float])
def test_a_number_takes_the_dtype_of_the_tensor_beside_it(kind):
    x = tp.asarray([1.5, -2.0], dtype="float32")
    result = tp.multiply_add(x, kind(2), kind(1))
    assert (result.dtype, result.numpy().tolist()) == (tp.float32, [4.0, -3.0])


def test_a_step_of_gradient_descent_rounds_float16_once():
    w, g = tp.asarray([1.0], dtype="float16"), tp.asarray([2.0**-8], dtype="float16")
    moved = tp.multiply_add(g, 0.375, w)  # the product alone is below half an ulp of 1
    assert moved.numpy().tolist() == [float(np.float16(1 + 2.0**-8 * 0.375))]


def test_multiply_add_refuses():
    with pytest.raises(ShapeError, match="MultiplyAdd"):
        tp.multiply_add(tp.ones(2), tp.ones(3), 1.0)
    with pytest.raises(DTypeError, match="MultiplyAdd"):
        tp.multiply_add(tp.asarray([True]), tp.asarray([True]), tp.asarray([False]))


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 1e6), ("float32", 1e300)])
def test_bounds_beyond_the_dtype_clip_nothing_and_warn_of_nothing(dtype, bound):
    x = np.array([-np.inf, -np.finfo(dtype).max, 1, np.inf], dtype)
    got = tp.clip(tp.asarray(x), -bound, bound)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy(), x)
