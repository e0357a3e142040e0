"""Elementwise functions: dtypes, weak scalars, special complex values, bounds, bits, refusals."""

from __future__ import annotations

import operator
from math import inf, nan, pi

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def exactly(tensor, dtype, values):
    """Check dtype and shape, then values with the signs of zeros; other floats to rounding."""
    wanted = np.asarray(values, dtype)
    actual = tensor.numpy()
    assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
    for part in ("real", "imag"):
        got, right = getattr(actual, part), getattr(wanted, part)
        np.testing.assert_allclose(got, right, rtol=1e-6)
        ordinary = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(got)[ordinary], np.signbit(right)[ordinary])


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


def test_complex_numbers_near_a_point():
    z = np.complex64([1e-6 + 1e-6j, -1e-5j, 3e-4])
    exactly(tp.log1p(z), "complex64", [1e-6 + 1e-6j, 5e-11 - 1e-5j, 2.999550e-4])
    exactly(tp.expm1(z), "complex64", [1e-6 + 1.000001e-6j, -5e-11 - 1e-5j, 3.000450e-4])


COMPLEX = {  # special cases for complex numbers where NumPy leaves C99
    "expm1": [
        *((complex(inf, 0), complex(inf, 0)), (complex(-inf, inf), complex(-1, 0))),
        *((complex(inf, inf), complex(inf, nan)), (complex(-inf, nan), complex(-1, 0))),
        *((complex(nan, 0), complex(nan, 0)), (complex(1, inf), complex(nan, nan))),
    ],
    "log1p": [
        *((complex(-1, 0), complex(-inf, 0)), (complex(1, inf), complex(inf, pi / 2))),
        *((complex(-inf, 1), complex(inf, pi)), (complex(inf, nan), complex(inf, nan))),
    ],
    "tan": [(complex(0, inf), complex(0, 1)), (complex(inf, 1), complex(nan, nan))],
    "acos": [(complex(0, inf), complex(pi / 2, -inf)), (complex(nan, inf), complex(nan, -inf))],
    "log2": [(complex(-0.0, 0), complex(-inf, pi / np.log(2)))],
}


@pytest.mark.parametrize("name", COMPLEX)
def test_special_complex_values(name):
    for z, value in COMPLEX[name]:
        exactly(getattr(tp, name)(np.array([z])), "complex128", [value])


def test_division_without_nan():
    expect(tp.div_no_nan(np.int32([7, 1]), 2), "float32", (2,), [3.5, 0.5])
    expect(tp.asarray(np.float16([3])).div_no_nan(0.5), "float16", (1,), [6])
    expect(tp.div_no_nan(1j, np.complex64([0, 2])), "complex64", (2,), [0, 0.5j])


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


def test_classification():
    x = np.array([1, -0.0, inf, -inf, nan], np.float32)
    for whole in (np.uint64([2**64 - 1]), np.array([True])):
        assert [f(whole).item() for f in (tp.isnan, tp.isinf, tp.isfinite)] == [False, False, True]
    for name in ("IsNan", "IsInf", "IsFinite"):
        with pytest.raises(NotConnectedError):
            tp.grad(lambda x, name=name: tp.sum(tp.run_kernel(name, {"x": x}) * 1.0))(x)


def test_exclusive_or():
    a = np.array([[True], [False]])
    expect(tp.logical_xor(a, True), "bool", (2, 1), [[False], [True]])
    with pytest.raises(DTypeError, match="LogicalXor"):
        tp.logical_xor(a, 1)


# Rounding, signs -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc", "sign"])
def test_rounding_keeps_integers(name):
    x = np.int16([-3, 0, 7])
    result = tp.run_kernel(name.capitalize(), {"x": x})
    expect(result, "int16", (3,), np.sign(x) if name == "sign" else x)
    with pytest.raises(NotConnectedError):
        tp.grad(lambda x: tp.sum(getattr(tp, name)(x)))(np.float32([0.5]))


def test_large_odd_numbers_stay():
    x = np.float32([2**23 - 0.5, 2**23 + 1, -(2.0**24) - 2])
    expect(tp.round(x), "float32", (3,), [2**23, 2**23 + 1, -(2**24) - 2])


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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_rounded_in_float32(dtype):
    x = tp.asarray([0.125, 0.3751, 1234.5, 60000.0, inf], dtype=dtype)
    wide = x.astype("float32")
    for decimals in (-2, 2, 5):
        with np.errstate(all="ignore"):
            expected = np.round(wide.numpy(), decimals)
        result = tp.round(x, decimals)
        assert result.dtype == dt.of(dtype)
        np.testing.assert_array_equal(
            result.astype("float32").numpy(),
            tp.asarray(expected).astype(dtype).astype("float32").numpy(),
        )


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


def test_signs_of_complex_numbers():
    signs = tp.sign(np.array([3 + 4j, 0, -2j, complex(nan, 1)]))
    exactly(signs, "complex128", [0.6 + 0.8j, 0, -1j, complex(nan, nan)])


def test_signs_of_zeros_and_nan():
    x = np.array([1, -1, 0.0, -0.0, inf, -inf, nan, np.copysign(nan, -1)], np.float32)
    negative = [False, True, False, True, False, True, False, True]
    expect(tp.signbit(x), "bool", (8,), negative)
    expect(tp.signbit(np.int8([-128, 0, 1])), "bool", (3,), [True, False, False])
    exactly(tp.copysign(np.float32(2), x), "float32", np.where(negative, -2, 2))
    exactly(tp.copysign(x[:6], -0.0), "float32", [-1, -1, -0.0, -0.0, -inf, -inf])
    expect(tp.copysign(np.int32([3]), np.int32([-1])), "float32", (1,), [-3])


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


def test_gradients_of_bounds():
    x = np.float32([-2, -1, 0, 1, 2])
    for clip in (
        lambda x: tp.clip(x, -1, 1),
        lambda x: tp.clip_by_value(x, -1, 1),
    ):
        expect(tp.grad(lambda x, clip=clip: tp.sum(clip(x)))(x), "float32", (5,), [0, 1, 1, 1, 0])
    expect(tp.grad(lambda x: tp.sum(tp.clip(x, min=0)))(x), "float32", (5,), [0, 0, 1, 1, 1])
    low = tp.grad(lambda low: tp.sum(tp.clip(x, low)))(np.float32(0.5))
    expect(low, "float32", (), 3)


# Bits ------------------------------------------------------------------------------------


A = np.array([-128, -5, -1, 0, 1, 6, 127], np.int8)
B = np.array([3, -128, 85], np.int8)


@pytest.mark.parametrize(
    ("name", "by"),
    [("bitwise_and", operator.and_), ("bitwise_or", operator.or_), ("bitwise_xor", operator.xor)],
)
def test_of_two(name, by):
    function = getattr(tp, name)
    right = [[by(int(a), int(b)) for b in B] for a in A]
    expect(function(A[:, None], B), "int8", (7, 3), right)
    expect(by(tp.asarray(A[:, None]), tp.asarray(B)), "int8", (7, 3), right)
    expect(function(A, 3), "int8", (7,), [by(int(a), 3) for a in A])
    expect(function(3, A), "int8", (7,), [by(3, int(a)) for a in A])
    truth = np.array([True, False])
    expect(function(truth[:, None], truth), "bool", (2, 2), by(truth[:, None], truth))
    expect(function(A, np.int32([1] * 7)), "int32", (7,), [by(int(a), 1) for a in A])
    kernel = "".join(part.capitalize() for part in name.split("_"))
    expect(tp.run_kernel(kernel, {"a": A, "b": A[::-1]}), "int8", (7,), by(A, A[::-1]))
    with pytest.raises(DTypeError, match="is float32"):
        function(A, np.float32(1))


def test_invert():
    expect(tp.bitwise_invert(A), "int8", (7,), [-1 - int(a) for a in A])
    expect(~tp.asarray(np.uint16([0, 65535])), "uint16", (2,), [65535, 0])
    expect(tp.bitwise_invert(np.array([True, False])), "bool", (2,), [False, True])


def test_shifts():
    counts = np.int8([0, 1, 6, 7, 8, 100, -1])
    expect(tp.bitwise_left_shift(np.int8(3), counts), "int8", (7,), [3, 6, -64, -128, 0, 0, 0])
    right = [-100, -50, -2, -1, -1, -1, -1]
    expect(tp.bitwise_right_shift(np.int8(-100), counts), "int8", (7,), right)
    expect(tp.asarray(np.uint8([255])) >> 7, "uint8", (1,), [1])
    expect(1 << tp.asarray([0, 5, 31, 32]), "int32", (4,), [1, 32, -(2**31), 0])
    with pytest.raises(DTypeError, match="is bool"):
        tp.bitwise_left_shift(np.array([True]), np.array([True]))


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
