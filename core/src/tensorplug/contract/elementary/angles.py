"""Inverse trigonometric functions.

An arctangent is that of a quotient below tan(pi / 8), after pi / 4 or pi / 2 is subtracted, where
arctan(t) = t + t**3 A(t**2). asin(x) = x + x**3 B(x**2) up to 1/2; above, it is pi / 2 less twice
the arcsine of sqrt((1 - x) / 2). The coefficients of A and B minimize the largest relative error
(reweighted least squares at Chebyshev's points): 6.7e-10 and 2.8e-10 in float32, 1.3e-18 and
9.5e-19 in float64.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary.building import (
    both,
    copy_sign,
    equal,
    fma,
    fold_sign,
    is_signed,
    polynomial,
    real,
    sqrt,
)
from tensorplug.contract.elementary.trigonometric import half_pi
from tensorplug.contract.expressions import constant, where

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["acos", "asin", "atan", "atan2"]

_ARCTANGENT: Final = {  # A
    dt.float32: (
        -0.333333151684,
        0.199984702328,
        -0.142435081667,
        0.105936205281,
        -0.060777144224,
    ),
    dt.float64: (
        -0.33333333333333195865,
        0.19999999999953152321,
        -0.14285714280156572485,
        0.11111110781639229587,
        -0.090908977100102478509,
        0.076920594397307918485,
        -0.066630959782893865848,
        0.058478353372610286346,
        -0.0503908059860115371,
        0.038059302065881777158,
        -0.017901882400660908972,
    ),
}
_ARCSINE: Final = {  # B
    dt.float32: (
        0.166666599894,
        0.0750050429767,
        0.0445169325959,
        0.0318079165216,
        0.0144378166531,
        0.0375176127091,
    ),
    dt.float64: (
        0.166666666666667605,
        0.074999999999707760185,
        0.04464285717463493639,
        0.030381942706721350824,
        0.022372215016493283298,
        0.017351611507472187751,
        0.013980826539432543097,
        0.011398863486736592437,
        0.010780525242617638672,
        0.0037053815097733683065,
        0.021709940108421945621,
        -0.021002576925543336519,
        0.032630809881262594678,
    ),
}
_TAN_PI_8: Final = 0.41421356237309504880
_TAN_3_PI_8: Final = 2.41421356237309504880


def atan(x: Expression) -> Expression:
    """Return the arctangent."""
    rest, quarters = _reduce(abs(x), constant(1.0, x.dtype))
    high, low = half_pi(x)
    return copy_sign(fma(quarters, high, fma(quarters, low, rest)), x)


def atan2(y: Expression, x: Expression) -> Expression:
    """Return the angle of the point (x, y): between -pi and pi."""
    height, width = abs(y), abs(x)
    # Lengths near the ends of the range are scaled, so that no sum overflows, and none of two
    # subnormal numbers loses digits; two infinities count as two ones.
    bias = real(x).bias
    longest = where(height < width, width, height)
    small = where(longest < 2.0 ** (2 - bias), 2.0**64, constant(1.0, x.dtype))
    factor = where(longest > 2.0 ** (bias - 2), 0.25, small)
    endless = both(equal(height, inf), equal(width, inf))
    rest, quarters = _reduce(
        where(endless, 1.0, height * factor), where(endless, 1.0, width * factor)
    )
    rest = where(equal(height + width, 0.0), 0.0, rest)
    behind = is_signed(x)
    quarters = where(behind, 2.0 - quarters, quarters)
    high, low = half_pi(x)
    return copy_sign(fma(quarters, high, fma(quarters, low, fold_sign(rest, behind))), y)


def _reduce(height: Expression, width: Expression) -> tuple[Expression, Expression]:
    """Return the angle of the point as the rest from 0, 1/2 or 1 quarter turn."""
    is_steep = height > width * _TAN_3_PI_8
    is_flat = height <= width * _TAN_PI_8
    above = where(is_steep, -width, where(is_flat, height, height - width))
    below = where(is_steep, height, where(is_flat, width, height + width))
    t = above / below
    z = t * t
    rest = fma(t * z, polynomial(_ARCTANGENT[t.dtype], z), t)
    quarters = where(is_steep, 1.0, where(is_flat, constant(0.0, t.dtype), 0.5))
    return rest, quarters


def asin(x: Expression) -> Expression:
    """Return the arcsine."""
    size = abs(x)
    is_small, small = _arcsine_of_small(size)
    high, low = half_pi(x)
    large = fma(small, -2.0, low) + high
    return copy_sign(where(is_small, small, large), x)


def acos(x: Expression) -> Expression:
    """Return the arccosine."""
    is_small, small = _arcsine_of_small(abs(x))
    high, low = half_pi(x)
    is_negative = x < 0.0
    near_half = high - (fold_sign(small, is_negative) - low)
    near_pi = fma(small, -2.0, 2.0 * low) + 2.0 * high
    return where(is_small, near_half, where(is_negative, near_pi, 2.0 * small))


def _arcsine_of_small(size: Expression) -> tuple[Expression, Expression]:
    """Return whether size <= 1/2, and the arcsine of it, or of sqrt((1 - size) / 2)."""
    is_small = size <= 0.5
    z = where(is_small, size * size, 0.5 - 0.5 * size)
    s = where(is_small, size, sqrt(z))
    return is_small, fma(s * z, polynomial(_ARCSINE[size.dtype], z), s)
