"""The exponential function, and the same less 1.

A multiple k of log(2) is subtracted, in two parts of which the first has so few bits that its
product with k is exact. For the rest r, at most log(2) / 2, exp(r) = 1 + r + r**2 Q(r). The
coefficients of Q minimize the largest relative error of the sum (reweighted least squares at
Chebyshev's points): 3.1e-9 in float32, 3.7e-18 in float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary.building import equal, fma, limited, polynomial, real
from tensorplug.contract.expressions import bitcast, where

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["LOG_2_PARTS", "exp", "exp_of_sum", "expm1", "half_exp", "loss", "power_of_2_of_sum"]


class _Range(NamedTuple):
    """Where exp is 0 and infinite, its results begin to be subnormal, and exp - 1 is -1."""

    lowest: float
    highest: float
    subnormal: float
    minus_1: float


_RANGES: Final = {
    dt.float32: _Range(-104.5, 89.0, -86.0, -18.0),
    dt.float64: _Range(-746.0, 710.0, -707.0, -38.0),
}
_LOG_2: Final = 0.69314718055994530942
_LOG_2_E: Final = 1.4426950408889634074
LOG_2_PARTS: Final = {  # in two parts: products of the first with exponents are exact
    dt.float32: (0.693359375, -2.12194440054690583e-4),
    dt.float64: (6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
_SERIES: Final = {  # Q
    dt.float32: (0.499999934143, 0.166665201055, 0.0416683935057, 0.00836878058264, 0.00138145151),
    dt.float64: (
        0.50000000000000106739,
        0.16666666666666411284,
        0.041666666666529683342,
        0.008333333333495052261,
        0.0013888888943771538298,
        0.00019841269505714465235,
        0.000024801492938356136454,
        2.7557586791680506796e-6,
        2.7630309947487930098e-7,
        2.5000037504376880971e-8,
    ),
}
_LIFT: Final = 64  # results below the normal numbers are first multiplied by 2**64


def _reduce(x: Expression, less: int) -> tuple[Expression, Expression]:
    """Return 2**(k - less), as a number whose last bits are its exponent, and the rest of x."""
    layout = real(x)
    rounder = layout.rounder + (layout.bias - less)
    exponent = fma(x, _LOG_2_E, rounder)
    k = exponent - rounder
    high, low = LOG_2_PARTS[x.dtype]
    return exponent, fma(k, -low, fma(k, -high, x))


def _power_of_2(exponent: Expression) -> Expression:
    layout = real(exponent)
    return bitcast(bitcast(exponent, layout.bits) << layout.fraction, exponent.dtype)


def exp(x: Expression) -> Expression:
    """Return e**x."""
    return exp_of_sum(x, None)


def exp_of_sum(x: Expression, little: Expression | None) -> Expression:
    """Return e**(x + little), where ``little`` is less than about 0.01; None for 0."""
    limits = _RANGES[x.dtype]
    x = limited(x, limits.lowest, limits.highest)
    exponent, rest = _reduce(x, 1)
    rest = rest if little is None else rest + little
    return _twice_exp(rest, exponent, x < limits.subnormal)


def half_exp(x: Expression) -> Expression:
    """Return e**x / 2 for x >= 0, also where e**x overflows and its half does not."""
    exponent, rest = _reduce(limited(x, high=_RANGES[x.dtype].highest + 1), 2)
    return _twice_exp(rest, exponent)


def power_of_2_of_sum(x: Expression, little: Expression) -> Expression:
    """Return 2**(x + little); ``little`` is less than about 0.01, and ignored for large x."""
    layout = real(x)
    highest = float(layout.bias + 1)
    lowest = -highest - layout.fraction
    cut = limited(x, lowest, highest)
    rounder = layout.rounder + (layout.bias - 1)
    exponent = cut + rounder
    fraction = (cut - (exponent - rounder)) + where(equal(cut, x), little, 0.0)
    return _twice_exp(fraction * _LOG_2, exponent, cut < 3.0 - highest)


def _twice_exp(
    rest: Expression, exponent: Expression, is_low: Expression | None = None
) -> Expression:
    """Return 2 e**rest 2**k; ``is_low``: whether the result may be subnormal.

    Half of the power of 2 does not overflow.
    """
    power = polynomial(
        [2.0 * coefficient for coefficient in (1.0, 1.0, *_SERIES[rest.dtype])], rest
    )
    if is_low is None:
        return power * _power_of_2(exponent)
    result = power * _power_of_2(where(is_low, exponent + _LIFT, exponent))
    return where(is_low, result * 2.0**-_LIFT, result)


def expm1(x: Expression) -> Expression:
    """Return e**x - 1, with its digits also where it is small."""
    limits = _RANGES[x.dtype]
    cut = limited(x, limits.minus_1, limits.highest)
    exponent, rest = _reduce(cut, 1)
    half = _power_of_2(exponent)
    # 2 (h p + (h - 1/2)): half of the power of 2 does not overflow.
    result = 2.0 * fma(half, _expm1_of_rest(rest), half - 0.5)
    return where(abs(x) < real(x).smallest, x, result)


def loss(x: Expression) -> Expression:
    """Return e**-x - 1 for x >= 0."""
    exponent, rest = _reduce(limited(-x, low=_RANGES[x.dtype].minus_1), 0)
    power = _power_of_2(exponent)
    return fma(power, _expm1_of_rest(rest), power - 1.0)


def _expm1_of_rest(rest: Expression) -> Expression:
    return fma(rest * rest, polynomial(_SERIES[rest.dtype], rest), rest)
