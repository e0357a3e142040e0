"""Inverse trigonometric functions and powers, which are our own, over their whole range.

NumPy computes the expected values in extended precision.
"""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.ops.elementwise import arithmetic, trigonometry, unary

DTYPES = ["float32", "float64"]


def special(dtype):
    """Return both zeros, infinities, NaN, ones and their neighbours, subnormals, the largest."""
    about, one = np.finfo(dtype), np.dtype(dtype).type(1)
    near_one = [np.nextafter(one, 2 * one), np.nextafter(one, 0 * one)]
    few = [0, 1, 0.5, 2, 3, 2.5, 7, about.tiny, about.smallest_subnormal, about.max, np.inf]
    few = np.array([*few, *near_one, 2.0**about.nmant, 2.0 ** (about.nmant + 1) + 2], dtype)
    return np.concatenate([few, -few, np.array([np.nan], dtype)])


def pairs(rng, dtype):
    """Return every pair of special numbers, then pairs of which most are of similar size."""
    few = special(dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(few, few))
    size = 10.0 ** rng.uniform(-30, 30, 3000)
    more = rng.standard_normal((2, 3000)) * size * 10.0 ** rng.uniform(-3, 3, (2, 3000))
    return np.concatenate([a, more[0].astype(dtype)]), np.concatenate([b, more[1].astype(dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("spec", "function", "ulp"),
    [
        (unary.ATAN, np.arctan, 3),
        (trigonometry.ASIN, np.arcsin, 3),
        (trigonometry.ACOS, np.arccos, 3),
    ],
    ids=["atan", "asin", "acos"],
)
def test_angles(call, near, spec, function, ulp, dtype):
    rng = np.random.default_rng(3)
    small = rng.uniform(-1, 1, 3000) * 10.0 ** rng.uniform(-30, 0, 3000)
    x = np.concatenate([special(dtype), np.linspace(-1, 1, 3001), small, 3 / small]).astype(dtype)
    with np.errstate(invalid="ignore"):
        expected = function(x.astype(np.longdouble))
    near(call(spec, x), expected, dtype, ulp=ulp)


@pytest.mark.parametrize("dtype", DTYPES)
def test_angles_of_points(call, near, dtype):
    y, x = pairs(np.random.default_rng(4), dtype)
    expected = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    actual = call(trigonometry.ATAN2, y, x)
    near(actual, expected, dtype, ulp=3)
    whole = ~np.isnan(actual)
    np.testing.assert_array_equal(np.signbit(actual[whole]), np.signbit(expected[whole]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(call, near, dtype):
    rng = np.random.default_rng(5)
    x, y = pairs(rng, dtype)
    reach = np.log(float(np.finfo(dtype).max))
    base = np.concatenate([np.exp(rng.uniform(-20, 20, 3000)), rng.uniform(0.99, 1.01, 3000)])
    exponent = rng.uniform(-1, 1, 6000) * np.minimum(1.05 * reach / np.abs(np.log(base)), 1e6)
    x, y = (np.concatenate(parts).astype(dtype) for parts in ((x, base), (y, exponent)))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        expected = expected.astype(dtype).astype(np.longdouble)  # where the range ends
    actual = call(arithmetic.POW, x, y)
    near(actual, expected, dtype, ulp=3)
    whole = ~np.isnan(actual)
    np.testing.assert_array_equal(np.signbit(actual[whole]), np.signbit(expected[whole]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_powers_that_are_numbers_of_the_type_are_exact(call, dtype):
    x, y = (grid.ravel() for grid in np.meshgrid(np.arange(-40, 41), np.arange(60)))
    exact = np.array([int(a) ** int(b) for a, b in zip(x, y, strict=True)], dtype=object)
    few = np.array([abs(power) <= 2 ** np.finfo(dtype).nmant for power in exact])
    actual = call(arithmetic.POW, x[few].astype(dtype), y[few].astype(dtype))
    np.testing.assert_array_equal(actual, exact[few].astype(dtype))
