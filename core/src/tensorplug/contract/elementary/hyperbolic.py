"""Hyperbolic functions and their inverses.

For |x| <= 1, sinh(x) = x + x**3 S(x**2). The coefficients of S minimize the largest relative error
(reweighted least squares at Chebyshev's points): 5.2e-11 in float32, 8.7e-20 in float64.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary import exponentials
from tensorplug.contract.elementary.building import copy_sign, fma, limited, polynomial, sqrt
from tensorplug.contract.elementary.logarithms import log1p
from tensorplug.contract.expressions import where

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

_SINE: Final = {  # S
    dt.float32: (0.166666664975, 0.0083333500653, 0.000198361584128, 2.81695905747e-6),
    dt.float64: (
        0.16666666666666667384,
        0.0083333333333331476155,
        0.00019841269841431962594,
        2.7557319157042740806e-6,
        2.5052123141468821592e-8,
        1.6057259390043864271e-10,
        7.7587605663909285413e-13,
    ),
}
_LOG_2: Final = 0.69314718055994530942
# From here on, 1 + x rounds to x and 1 + x**2 to x**2; the square does not overflow.
_LARGE: Final = {dt.float32: 2.0**30, dt.float64: 2.0**60}


def tanh(x: Expression) -> Expression:
    """Return the hyperbolic tangent."""
    less = exponentials.loss(2.0 * abs(x))
    return copy_sign(less / (less + 2.0), x)


def sinh(x: Expression) -> Expression:
    """Return the hyperbolic sine."""
    size = abs(x)
    z = x * x
    near = fma(x * z, polynomial(_SINE[x.dtype], z), x)
    half = exponentials.half_exp(size)
    return where(size < 1.0, near, copy_sign(half - 0.25 / half, x))


def cosh(x: Expression) -> Expression:
    """Return the hyperbolic cosine."""
    half = exponentials.half_exp(abs(x))
    return half + 0.25 / half


def asinh(x: Expression) -> Expression:
    """Return the inverse of the hyperbolic sine."""
    size, large = abs(x), _LARGE[x.dtype]
    cut = limited(size, high=large)
    square = cut * cut
    power = cut + square / (1.0 + sqrt(1.0 + square))
    return copy_sign(_log1p_of_power(power, size), x)


def acosh(x: Expression) -> Expression:
    """Return the inverse of the hyperbolic cosine, at least 0."""
    above = limited(x, high=_LARGE[x.dtype]) - 1.0
    result = _log1p_of_power(above + sqrt(above * (above + 2.0)), x)
    return where(x < 1.0, nan, result)


def _log1p_of_power(power: Expression, size: Expression) -> Expression:
    """Return log(1 + power); for large ``size`` log(2 size) instead."""
    is_large = size >= _LARGE[size.dtype]
    result = log1p(where(is_large, size, power))
    return where(is_large, result + _LOG_2, result)


def atanh(x: Expression) -> Expression:
    """Return the inverse of the hyperbolic tangent."""
    size = abs(x)
    return copy_sign(0.5 * log1p(2.0 * size / (1.0 - size)), x)
