"""Elementwise kernels against NumPy in longer precision and Python's unbounded integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.ops.elementwise import (
    arithmetic,
    casting,
    choosing,
    comparison,
    powers,
    rounding,
    trigonometry,
)
from tensorplug.ops.elementwise import unary as ops
from tensorplug.ops.nn import activation, sigmoid_linear

FLOATS = ["float32", "float64"]
INTEGERS = sorted(dtype.name for dtype in dt.INTEGER)


def floats(dtype):
    """Return edges, then numbers of every magnitude."""
    limits = np.finfo(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 30.5, math.inf, -math.inf, math.nan]
    edges += [limits.max, limits.min, limits.tiny, -limits.tiny, limits.smallest_subnormal]
    rng = np.random.default_rng(7)
    spread = 10.0 ** rng.uniform(-30, 30, 500) * rng.choice([-1, 1], 500)
    return np.concatenate([edges, rng.normal(size=500) * 9, spread]).astype(dtype)


def integers(dtype):
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3, 7, 100]
    negative = [-1, -2, -3, -7, -100] if limits.min else []
    return np.array([*edges, *negative], dtype)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.longdouble])(x.astype(float))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return np.where(x == -math.inf, 0, x * sigmoid(x))


def scaled_elu(above, below):
    return lambda x: np.where(x > 0, above * x, below * np.expm1(np.minimum(x, 0)))


LIMIT_OF_SELU = -activation.SELU_SCALE * activation.SELU_ALPHA


UNARY = [
    (ops.NEG, np.negative, 0),
    (ops.ABS, np.abs, 0),
    (ops.FLOOR, np.floor, 0),
    (ops.SQUARE, np.square, 0),
    (ops.SQRT, np.sqrt, 0),
    (ops.EXP, np.exp, 3),
    (ops.LOG, np.log, 3),
    (ops.SIN, np.sin, 4),
    (ops.COS, np.cos, 4),
    (ops.ATAN, np.arctan, 5),
    (ops.TANH, np.tanh, 5),
    (ops.ERF, erf, 16),
    (activation.SIGMOID, sigmoid, 6),
    (activation.RELU, lambda x: np.where(np.isnan(x), x, np.where(x > 0, x, 0)), 0),
    (activation.RELU6, lambda x: np.clip(x, 0, 6), 0),
    (activation.ELU, scaled_elu(1, 1), 8),
    (activation.SELU, scaled_elu(activation.SELU_SCALE, -LIMIT_OF_SELU), 8),
    (activation.SOFTPLUS, lambda x: np.logaddexp(x, 0), 6),
    (sigmoid_linear.SILU, silu, 8),
    (rounding.CEIL, np.ceil, 0),
    (rounding.ROUND, np.rint, 0),
    (rounding.TRUNC, np.trunc, 0),
    (rounding.SIGN, np.sign, 0),
    (powers.EXPM1, np.expm1, 3),
    (powers.LOG1P, np.log1p, 4),
    (powers.LOG2, np.log2, 5),
    (powers.LOG10, np.log10, 5),
    (powers.RECIPROCAL, np.reciprocal, 2.5),
    (powers.RSQRT, lambda x: 1 / np.sqrt(x), 2),
    (trigonometry.TAN, np.tan, 5),
    (trigonometry.ASIN, np.arcsin, 4),
    (trigonometry.ACOS, np.arccos, 4),
    (trigonometry.SINH, np.sinh, 4),
    (trigonometry.COSH, np.cosh, 4),
    (trigonometry.ASINH, np.arcsinh, 4),
    (trigonometry.ACOSH, np.arccosh, 4),
    (trigonometry.ATANH, np.arctanh, 5),
]


ODD_FUNCTIONS = [
    *(ops.NEG, ops.FLOOR, ops.SQRT, ops.SIN, ops.ATAN, ops.TANH, ops.ERF),
    *(rounding.CEIL, rounding.ROUND, rounding.TRUNC, powers.EXPM1, powers.LOG1P),
    *(trigonometry.TAN, trigonometry.SINH, trigonometry.ASINH, trigonometry.ATANH),
]


def name(value):
    return getattr(value, "name", None)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("spec", "formula", "ulp"), UNARY, ids=name)
def test_unary(call, near, spec, formula, ulp, dtype):
    x = floats(dtype)
    with np.errstate(all="ignore"):
        expected = formula(x.astype(np.longdouble))
    near(call(spec, x), expected, dtype, ulp=ulp)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("spec", ODD_FUNCTIONS, ids=name)
def test_zero_keeps_its_sign(call, spec, dtype):
    zeros = np.array([0.0, -0.0], dtype)
    flipped = spec is ops.NEG
    assert np.signbit(call(spec, zeros)).tolist() == [flipped, not flipped]


def float_mod(a, b):
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def float_floor_div(a, b):
    ordinary = np.where((b == 0) | np.isinf(a), a / b, np.rint((a - float_mod(a, b)) / b))
    below_zero = np.where((a != 0) & ((a < 0) != (b < 0)), -1.0, 0.0)
    return np.where(np.isinf(b) & np.isfinite(a), below_zero, ordinary)


BINARY = [
    (arithmetic.ADD, np.add, 0),
    (arithmetic.SUB, np.subtract, 0),
    (arithmetic.MULTIPLY, np.multiply, 0),
    (arithmetic.REAL_DIV, np.divide, 2.5),
    (arithmetic.SQUARED_DIFFERENCE, lambda a, b: (a - b) ** 2, 2.5),
    (arithmetic.POW, np.power, 16),
    (arithmetic.MOD, float_mod, 0.5),
    (arithmetic.FLOOR_DIV, float_floor_div, 0),
    (arithmetic.MAXIMUM, np.maximum, 0),
    (arithmetic.MINIMUM, np.minimum, 0),
    (arithmetic.DIV_NO_NAN, lambda a, b: np.where(b == 0, 0, a / b), 2.5),
    (rounding.COPY_SIGN, np.copysign, 0),
    (powers.HYPOT, np.hypot, 4),
    (trigonometry.ATAN2, np.arctan2, 6),
]
FEW = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, 1e-3, 7.25, -30.5, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("spec", "formula", "ulp"), BINARY, ids=name)
def test_binary(call, near, spec, formula, ulp, dtype):
    edges = np.array([*FEW, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(edges, edges))
    rng = np.random.default_rng(3)
    a = np.concatenate([a, rng.normal(size=1000).astype(dtype) * 5])
    b = np.concatenate([b, rng.normal(size=1000).astype(dtype) * 3])
    with np.errstate(all="ignore"):
        expected = formula(a.astype(np.longdouble), b.astype(np.longdouble))
    near(call(spec, a, b), expected, dtype, ulp=ulp)


def power(a, b):
    return a**b if b >= 0 else {1: 1, -1: (-1) ** (b % 2)}.get(a, 0)


EXACT = [
    (arithmetic.ADD, lambda a, b: a + b),
    (arithmetic.SUB, lambda a, b: a - b),
    (arithmetic.MULTIPLY, lambda a, b: a * b),
    (arithmetic.SQUARED_DIFFERENCE, lambda a, b: (a - b) ** 2),
    (arithmetic.FLOOR_DIV, lambda a, b: a // b if b else 0),
    (arithmetic.MOD, lambda a, b: a % b if b else 0),
    (arithmetic.MAXIMUM, max),
    (arithmetic.MINIMUM, min),
    (ops.NEG, lambda a: -a),
    (ops.ABS, abs),
    (ops.SQUARE, lambda a: a * a),
    (ops.FLOOR, lambda a: a),
    (activation.RELU, lambda a: max(a, 0)),
]


def wrapped(values, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    return np.array([int(value) % (1 << bits) for value in values], f"uint{bits}").astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("spec", "formula"), EXACT, ids=name)
def test_integers(call, near, spec, formula, dtype):
    x = integers(dtype)
    inputs = [grid.ravel() for grid in np.meshgrid(x, x)][: len(spec.input_names)]
    expected = [formula(*map(int, row)) for row in zip(*inputs, strict=True)]
    near(call(spec, *inputs), wrapped(expected, dtype), dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power(call, near, dtype):
    exponents = np.array([0, 1, 2, 3, 7, 64] + ([-1, -2] if np.iinfo(dtype).min else []), dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(integers(dtype), exponents))
    expected = [power(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    near(call(arithmetic.POW, a, b), wrapped(expected, dtype), dtype)


COMPARISONS = [
    (comparison.EQUAL, np.equal),
    (comparison.NOT_EQUAL, np.not_equal),
    (comparison.LESS, np.less),
    (comparison.LESS_EQUAL, np.less_equal),
    (comparison.GREATER, np.greater),
    (comparison.GREATER_EQUAL, np.greater_equal),
]


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64"])
@pytest.mark.parametrize(("spec", "formula"), COMPARISONS, ids=name)
def test_comparison(call, near, spec, formula, dtype):
    x = np.array(FEW, dtype) if dtype == "float32" else integers(dtype)
    a, b = np.meshgrid(x, x)
    near(call(spec, a, b), formula(a, b), "bool")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (comparison.LOGICAL_AND, [False, False, False, True]),
        (comparison.LOGICAL_OR, [False, True, True, True]),
        (comparison.NOT_EQUAL, [False, True, True, False]),
    ],
    ids=name,
)
def test_logic(call, near, spec, expected):
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    near(call(spec, a, b), expected, "bool")


def test_not(call, near):
    near(call(comparison.LOGICAL_NOT, np.array([False, True])), [True, False], "bool")


CASTS = [  # from, values, to, expected
    (
        "float32",
        [1.9, -1.9, math.nan, math.inf, -math.inf, 300, -129],
        "int8",
        [1, -1, 0, 0, 0, 44, 127],
    ),
    ("float32", [3e9, -3e9, 2.0**40], "int32", [3_000_000_000 - 2**32, 2**32 - 3_000_000_000, 0]),
    (
        "float64",
        [2.0**63, -1.0, 2.0**64, 2.0**65 + 2.0**13],
        "uint64",
        [2**63, 2**64 - 1, 0, 2**13],
    ),
    ("float64", [-(2.0**63), 2.0**62], "int64", [-(2**63), 2**62]),
    ("int64", [2**40 + 5, -1], "uint8", [5, 255]),
    ("uint64", [2**64 - 1], "float32", [2.0**64]),
    ("int32", [16777217, 16777219], "float32", [16777216, 16777220]),
    ("float64", [1e300, 1 + 2.0**-30, 1e-46], "float32", [math.inf, 1, 0]),
    ("float32", [0.0, -0.0, 0.1, math.nan], "bool", [False, False, True, True]),
    ("int16", [0, 256, -1], "bool", [False, True, True]),
    ("bool", [False, True], "float64", [0, 1]),
]


@pytest.mark.parametrize(("source", "values", "target", "expected"), CASTS)
def test_cast(call, source, values, target, expected):
    actual = call(casting.CAST, np.array(values, source), dtype=target)
    assert actual.dtype == target
    assert actual.tolist() == np.array(expected, target).tolist()


SHAPES = [
    ((), ()),
    ((3,), ()),
    ((2, 3), (3,)),
    ((2, 1, 4), (3, 1)),
    ((5, 1), (1, 6)),
    ((1, 2, 1, 2, 1, 2, 1, 2), (2, 1, 2, 1, 2, 1, 2, 1)),
    ((0, 3), (1, 3)),
    ((2, 0), ()),
    ((70001,), (1,)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_broadcasting(call, near, left, right):
    rng = np.random.default_rng(5)
    a, b = rng.integers(-99, 99, left), rng.integers(-99, 99, right)
    near(call(arithmetic.SUB, a, b), a - b, "int64")
    near(call(arithmetic.SUB, b, a), b - a, "int64")


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "float64"])
def test_select_broadcasts_three_ways(call, near, dtype):
    rng = np.random.default_rng(6)
    condition = rng.integers(0, 2, (4, 1)).astype(bool)
    t, e = rng.integers(0, 2, (3, 1, 5)).astype(dtype), rng.integers(0, 2, 5).astype(dtype)
    near(call(choosing.SELECT, condition, t, e), np.where(condition, t, e), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(call, near, axis, dtype):
    x = (np.random.default_rng(8).normal(size=(3, 70, 5)) * 20).astype(dtype)
    wide = x.astype(np.longdouble)
    below = wide - wide.max(axis=axis, keepdims=True)
    others = np.where(below == 0, 0, np.exp(below)).sum(axis=axis, keepdims=True)
    shares = np.exp(below) / (1 + others)
    logs, step = below - np.log1p(others), np.finfo(dtype).eps
    # The distances to the largest are rounded, by half their own last place.
    off = step * (3 - below / 2)
    of_sum = (np.where(below == 0, 0, shares) * off).sum(axis=axis, keepdims=True)
    bound = shares * (off + of_sum)
    near(call(activation.SOFTMAX, x, dim=axis), shares, dtype, ulp=1, bound=bound)
    near(call(activation.LOG_SOFTMAX, x, axis=axis), logs, dtype, bound=of_sum - logs * step * 3)


def test_log_softmax_keeps_the_digits_of_a_sure_guess(call, near):
    """log(1 + e**-20) is 2e-9, which a float32 sum of 1 and e**-20 cannot hold."""
    actual = call(activation.LOG_SOFTMAX, np.array([20.0, 0.0], np.float32))
    near(actual, [-math.log1p(math.exp(-20)), -20 - math.log1p(math.exp(-20))], "float32", ulp=4)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_softmax_of_a_row_without_a_value_is_nan(call, odd):
    assert np.isnan(call(activation.SOFTMAX, np.array([1, odd], np.float32))).all()
    assert np.isnan(call(activation.LOG_SOFTMAX, np.array([1, odd], np.float32))).all()
