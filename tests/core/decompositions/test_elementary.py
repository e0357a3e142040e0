"""The elementary functions as expressions: how far they are from the true values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.core.support import expressions_interpreter as interpreter

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary import BOUNDS, expand, spell_out
from tensorplug.contract.expressions import FUNCTIONS, function, linearize, parameter
from tensorplug.errors import DTypeError

POINTS = {dt.float32: 1 << 15, dt.float64: 1 << 13}  # of each kind
ROUNDINGS = (interpreter.fma_once, interpreter.fma_twice)
INTERESTING = (
    0.0,
    5e-324,
    1e-310,
    1e-45,
    1e-40,
    1.2e-38,
    1e-8,
    0.41421356,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
)
INTERESTING += (2.5, 3.0, 88.72283, 88.73, 89.4, 104.0, 709.78, 710.4, 745.2, 1e10, 3.4e38, 1e300)
INTERESTING += (
    math.pi / 2,
    math.pi,
    8192.0,
    2.0**20,
    6381956970095103 * 2.0**797,
    math.inf,
    math.nan,
)
TRUE = {  # by NumPy where it has them, in a wider type
    **{name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "log2", "log10")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("acosh", "atanh", "atan2")},
    "pow": np.power,
}


def points(dtype, count):
    """Numbers of every size, of moderate size, near 1, and edges; as columns for two operands."""
    random = np.random.default_rng(18)
    kind = dtype.numpy.type
    patterns = random.integers(
        0, 1 << dtype.itemsize * 8, (2, POINTS[dtype]), dtype.numpy.str.replace("f", "u")
    )
    parts = [
        patterns.view(kind),
        random.uniform(-30, 30, patterns.shape),
        random.uniform(-750, 750, patterns.shape),
        random.uniform(-1, 1, patterns.shape),
        1 + random.normal(0, 0.2, patterns.shape),
    ]
    with np.errstate(all="ignore"):
        edges = np.asarray([*INTERESTING, *(-x for x in INTERESTING)]).astype(kind)
        edges = np.concatenate(
            [edges, np.nextafter(edges, kind(0)), np.nextafter(edges, kind(np.inf))]
        )
        pairs = np.stack([each.reshape(-1) for each in np.meshgrid(edges, edges)])
        columns = np.concatenate([*(part.astype(kind) for part in parts), pairs], axis=1)
    return list(columns[:count])


def true_values(name, operands, dtype):
    with np.errstate(all="ignore"):
        if name in TRUE:
            wide = np.float64 if dtype is dt.float32 else np.longdouble
            return TRUE[name](*(x.astype(wide) for x in operands))
        if dtype is dt.float32:
            return np.vectorize(getattr(math, name), otypes=[np.float64])(
                operands[0].astype(np.float64)
            )
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(80):

        def exact(x):
            if not abs(x) < 40:  # all digits of what follows are known
                return (
                    math.nan
                    if math.isnan(x)
                    else {"erf": math.copysign(1, x), "erfc": float(x < 0) * 2}[name]
                )
            value = getattr(mpmath, name)(x)
            high = float(value)
            return (
                np.longdouble(high) + np.longdouble(float(value - high))
                if value
                else np.longdouble(x)
            )

        return np.asarray([exact(float(x)) for x in operands[0]], np.longdouble)


def ulps(got, true, dtype):
    """The distance in units in the last place of the true value, infinite where kinds differ."""
    info = np.finfo(dtype.numpy)
    with np.errstate(all="ignore"):
        rounded = true.astype(got.dtype)
        finite = np.isfinite(true) & (true != 0)
        exponent = np.frexp(np.where(finite, true, 1))[1] - 1
        unit = np.ldexp(np.ones_like(true), np.maximum(exponent, info.minexp) - info.nmant)
        distance = np.abs(got.astype(true.dtype) - true) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(true))
    # Rounding to infinity or to the largest number: within a unit of the end of the range.
    at_end = np.isinf(got) & (np.abs(true) >= info.max) & (np.sign(got) == np.sign(true))
    distance = np.where(np.isfinite(distance), distance, np.inf)
    return np.where(
        same | at_end,
        np.where(same & np.isfinite(distance), np.minimum(distance, 0.5), 0),
        distance,
    )


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=lambda rounding: rounding.__name__)
@pytest.mark.parametrize("dtype", POINTS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_within_their_bounds(name, dtype, rounding):
    operands = points(dtype, FUNCTIONS[name])
    if (name, dtype) in (("erf", dt.float64), ("erfc", dt.float64)):
        operands = [operands[0][:: 1 << 5]]
    expression = expand(function(name, *(parameter(at, dtype) for at in range(FUNCTIONS[name]))))
    got = interpreter.interpret(expression, operands, rounding)
    assert got.dtype == dtype.numpy
    true = true_values(name, operands, dtype)
    assert got.shape == true.shape
    distance = ulps(got, true, dtype)
    worst = int(np.argmax(distance))
    assert distance[worst] <= BOUNDS[name, dtype], (
        [x[worst] for x in operands],
        got[worst],
        true[worst],
    )
    zero = (true == 0) & (got == 0)
    assert np.array_equal(np.signbit(got[zero]), np.signbit(true[zero]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_is_rounded_once(name):
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    operands = [bits, np.random.default_rng(2).permutation(bits)][: FUNCTIONS[name]]
    expression = expand(
        function(name, *(parameter(at, dt.float16) for at in range(FUNCTIONS[name])))
    )
    got = interpreter.interpret(expression, operands)
    wide = [x.astype(np.float32) for x in operands]
    true = true_values(name, wide, dt.float32)
    assert got.dtype == np.float16
    assert ulps(got, true, dt.float16).max() < 0.51


@pytest.mark.parametrize("dtype", POINTS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_are_of_the_numbers_size(name, dtype):
    expression = expand(function(name, *(parameter(at, dtype) for at in range(FUNCTIONS[name]))))
    nodes = linearize([expression])
    assert not {node.op for node in nodes} & FUNCTIONS.keys()
    assert {node.dtype.itemsize for node in nodes if node.dtype is not dt.bool_} == {
        dtype.itemsize
    }


def test_other_operations_are_refused():
    with pytest.raises(DTypeError, match=r"expand: add of float32 is not in FUNCTIONS"):
        expand(parameter(0, dt.float32) + 1.0)


def test_functions_are_spelled_out_but_for_some():
    x = parameter(0, dt.float32)
    outer = function("sin", function("exp", x) + function("tanh", x))
    for kept in (set(), {"exp"}, {"sin", "tanh"}, set(FUNCTIONS)):
        (root,) = spell_out([outer], kept)
        found = {node.op for node in linearize([root])} & FUNCTIONS.keys()
        assert found == {"sin", "exp", "tanh"} & kept
    numbers = np.float32([-1.5, 0, 0.25, 3])
    (root,) = spell_out([outer], ())
    wide = numbers.astype(np.float64)
    expected = np.sin(np.exp(wide) + np.tanh(wide))
    np.testing.assert_allclose(interpreter.interpret(root, [numbers]), expected, rtol=2e-6)
