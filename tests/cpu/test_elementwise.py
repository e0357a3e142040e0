"""Transcendental functions, complex numbers and Cast against math, cmath and Python integers."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from tensorplug.ops import arithmetic, casting
from tensorplug.ops import elementwise as ops
from tensorplug.plugin import dtypes as dt


def named(parameter):
    return getattr(parameter, "name", "")


INF, NAN = math.inf, math.nan
FLOATS = ["float16", "float32", "float64"]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, 1e-3, 7.25, -30.5, 200.0, INF, -INF, NAN]


def edges(dtype):
    limits = np.finfo(dtype)
    numbers = [*EDGES, float(limits.max), float(limits.tiny), float(limits.smallest_subnormal)]
    return np.array([*numbers, -float(limits.max), -float(limits.smallest_subnormal)], dtype)


def total(function, x):
    """Extend a function of ``math`` to where IEEE arithmetic has a value and math raises."""
    try:
        return function(x)
    except OverflowError:
        return INF
    except ValueError:
        return NAN


UNARY = [  # spec, definition, ulp
    (ops.NEG, lambda x: -x, 0),
    (ops.ABS, math.fabs, 0),
    (ops.FLOOR, lambda x: math.copysign(math.floor(x), x) if math.isfinite(x) else x, 0),
    (ops.EXP, math.exp, 3),
    (ops.LOG, lambda x: -INF if x == 0 else math.log(x), 3),
    (ops.SQRT, math.sqrt, 0),
    (ops.SIN, math.sin, 3),
    (ops.COS, math.cos, 3),
    (ops.ATAN, math.atan, 3),
    (ops.ERF, math.erf, 4),  # float32; float64 is held to 1 below
    (ops.TANH, math.tanh, 3),
    (ops.SQUARE, lambda x: x * x, 0),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("spec", "a", "b", "expected"),
    [
        (arithmetic.FLOOR_DIV, 1.5, -INF, -1.0),  # the floor of the exact quotient
        (arithmetic.FLOOR_DIV, -1.5, INF, -1.0),
        (arithmetic.FLOOR_DIV, 0.0, -INF, -0.0),
        (arithmetic.MOD, 1.5, -INF, -INF),
        (arithmetic.MOD, -1.5, INF, INF),
        (arithmetic.MOD, -1.5, -INF, -1.5),
    ],
)
def test_numbers_divided_by_infinities_of_the_other_sign(call, near, spec, a, b, expected, dtype):
    """The array API standard has these; the suite leaves them to the backend."""
    near(call(spec, np.array(a, dtype), np.array(b, dtype)), expected, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("spec", "function", "ulp"), UNARY, ids=named)
def test_unary_on_edges(call, near, spec, function, ulp, dtype):
    x = edges(dtype)
    near(call(spec, x), [total(function, float(number)) for number in x], dtype, ulp=ulp)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 2, 1, 2, 1, 2), (67,)])
@pytest.mark.parametrize(("spec", "function", "ulp"), UNARY, ids=named)
def test_unary_shapes(call, near, spec, function, ulp, shape):
    x = np.linspace(0.1, 3, math.prod(shape)).reshape(shape).astype("float32")
    expected = np.array([total(function, float(number)) for number in x.flat]).reshape(shape)
    near(call(spec, x), expected, "float32", ulp=ulp)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("spec", "function"),
    [
        (ops.NEG, lambda z: -z),
        (ops.EXP, cmath.exp),
        (ops.LOG, cmath.log),
        (ops.SQRT, cmath.sqrt),
        (ops.SIN, cmath.sin),
        (ops.COS, cmath.cos),
        (ops.ATAN, cmath.atan),
        (ops.TANH, cmath.tanh),
        (ops.SQUARE, lambda z: z * z),
    ],
    ids=named,
)
def test_unary_complex(call, near, spec, function, dtype):
    z = np.array([0.5 + 0.25j, -1.5 + 2j, 3 - 0.125j, -0.75 - 0.5j], dtype)
    near(call(spec, z), [function(complex(number)) for number in z], dtype, ulp=8)


def test_erf_on_every_piece(call, near):
    pieces = np.concatenate([np.linspace(-7, 7, 4001), 10.0 ** np.linspace(-300, 0, 301)])
    ends = [0.84375, 1.25, 1 / 0.35, 4.0, 6.0]
    x = np.concatenate([pieces, ends, np.nextafter(ends, 0), np.nextafter(ends, 9)])
    near(call(ops.ERF, x), [math.erf(number) for number in x], "float64", ulp=1)
    single = x.astype("float32")
    near(call(ops.ERF, single), [math.erf(number) for number in single], "float32", ulp=4)


def wrapped(value, dtype):
    limits = np.iinfo(dtype)
    span = 2**limits.bits
    return (value - int(limits.min)) % span + int(limits.min)


def extremes(dtype):
    limits = np.iinfo(dtype)
    near_ends = [limits.min, limits.min + 1, limits.max - 1, limits.max]
    small = [-7, -3, -2, -1] if limits.min else []
    return [*map(int, near_ends), *small, 0, 1, 2, 3, 7, 100]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [[2.0], [0.5, 3.0, -1.0, 0.0, -2.0, 1.0, NAN]])
def test_pow_of_floats(call, near, dtype, exponent):
    values = np.array([0.25, 1.0, 2.5, 9.0, INF, NAN], dtype)
    expected = [[x**y for y in exponent] for x in map(float, values)]
    near(
        call(arithmetic.POW, values[:, None], np.array(exponent, dtype)),
        expected,
        dtype,
        ulp=1,
    )
    by_scalar = call(arithmetic.POW, values, np.array(exponent[0], dtype))
    near(by_scalar, [x ** exponent[0] for x in map(float, values)], dtype, ulp=1)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("spec", "function"),
    [
        (arithmetic.ADD, lambda a, b: a + b),
        (arithmetic.SUB, lambda a, b: a - b),
        (arithmetic.MULTIPLY, lambda a, b: a * b),
        (arithmetic.REAL_DIV, lambda a, b: a / b),
        (arithmetic.POW, lambda a, b: a**b),
        (arithmetic.SQUARED_DIFFERENCE, lambda a, b: (a - b) ** 2),
    ],
    ids=named,
)
def test_binary_complex(call, near, spec, function, dtype):
    a, b = [0.5 + 0.25j, -1.5 + 2j, 3 - 0.125j], [1.5 - 0.5j, -2 + 0.25j]
    expected = [[function(x, y) for y in b] for x in a]
    near(call(spec, np.array(a, dtype)[:, None], np.array(b, dtype)), expected, dtype, ulp=8)


def converted(value, target):
    """The model of Cast on Python numbers."""
    kind = np.dtype(target).kind
    if kind == "b":
        return value != 0  # True for NaN
    if isinstance(value, complex) and kind != "c":
        value = value.real
    if kind in "iu" and isinstance(value, float):
        return wrapped(int(value), target) if math.isfinite(value) else 0
    return wrapped(value, target) if kind in "iu" else value


def sources(dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False])
    if kind in "iu":
        return np.array(extremes(dtype), dtype)
    numbers = [0.0, -0.0, 0.5, -0.5, 1.9, -1.9, 127.5, 255.0, 300.0, -129.0, 4e4, -4e4]
    large = [INF, -INF, NAN, 3e9, -3e9, 2.0**31, 2.0**62, -(2.0**63), 2.0**63, 1.5 * 2.0**63, 1e30]
    with np.errstate(over="ignore"):
        values = np.array([*numbers, *large], dtype)
    return values + np.array([0, 1j], dtype)[:, None] if kind == "c" else values


FIXED = sorted(dtype.name for dtype in dt.FIXED - dt.WIDENED)  # others: core/test_bfloat16.py


@pytest.mark.parametrize("target", FIXED)
@pytest.mark.parametrize("source", FIXED)
def test_cast(call, near, source, target):
    x = sources(source)
    expected = [converted(number.item(), target) for number in x.flat]
    if np.dtype(target).kind in "fc" and np.dtype(source).kind in "fc":
        with np.errstate(all="ignore"):
            table = np.array(expected, "complex128" if np.dtype(target).kind == "c" else "float64")
    else:
        table = (
            np.array(expected, object).astype(target)
            if np.dtype(target).kind in "iub"
            else np.array(expected, "float64" if np.dtype(target).kind == "f" else "complex128")
        )
    near(call(casting.CAST, x, dtype=target), table.reshape(x.shape), target)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (300.0, "uint8", 44),
        (-1.0, "uint8", 255),
        (NAN, "int32", 0),
        (INF, "int64", 0),
        (2.0**31, "int32", -(2**31)),
        (1.5 * 2.0**63, "uint64", 3 * 2**62),
        (2.0**63, "int64", -(2**63)),
        (-1.75 * 2.0**64, "int64", 2**62),
        (1e30, "int64", int(1e30) % 2**64),
        (2.0**64, "uint64", 0),
    ],
)
def test_cast_by_hand(call, near, value, target, expected):
    near(call(casting.CAST, np.array(value), dtype=target), np.array(expected, target), target)
