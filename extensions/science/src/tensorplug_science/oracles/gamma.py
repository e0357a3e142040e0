"""References for gamma functions, in wide arithmetic.

By recurrence and Stirling's series, or a Taylor series at a zero, where the kernels have rational
functions. (DLMF 5.5, 5.7, 5.11.)
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance import Bounded, epsilon
from tensorplug_conformance.corpus import wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance import Array

_PI: Final = np.longdouble("3.14159265358979323846264338327950288")
_EULER: Final = np.longdouble("0.57721566490153286060651209008240243")
_FAR: Final = 30.0  # from here on, Stirling's series is accurate
_STEPS: Final = 71  # from -40.x to there


def _find_bernoulli_numbers(count: int) -> list[Fraction]:
    """Return B(0), B(1), ..., by their recurrence."""
    numbers = [Fraction(1)]
    for n in range(1, count):
        total = sum((math.comb(n + 1, k) * numbers[k] for k in range(n)), Fraction(0))
        numbers.append(-total / (n + 1))
    return numbers


_BERNOULLI: Final = [
    np.longdouble(b.numerator) / b.denominator for b in _find_bernoulli_numbers(25)
]


def lgamma(x: Array) -> Bounded:
    """Return ln |gamma(x)|; below -1/2, near zeros, with an allowance for the terms' errors."""
    at = wide(x)
    value = log_gamma(at)
    room = np.where(at < -0.5, 8 * (1 + np.abs(log_gamma(np.abs(at)))), 0)
    return Bounded(value, room * epsilon(x))


def log_gamma(x: Array) -> Array:
    """Return ln |gamma(x)| of wide numbers."""
    y, product = x.copy(), np.ones_like(x)
    for _ in range(_STEPS):
        low = y < _FAR
        if not low.any():
            break
        product = np.where(low, product * y, product)
        y = np.where(low, y + 1, y)
    terms = [_BERNOULLI[k] / (k * (k - 1)) for k in range(2, 25, 2)]
    series = _sum_powers(terms, 1 / (y * y)) / y
    far = (y - 0.5) * (np.log(y) - 1) + (np.log(2 * _PI) - 1) / 2 + series
    value = np.asarray(far - np.log(np.abs(product)))
    for zero in (1, 2):
        close = np.abs(x - zero) < 0.2
        z = x[close] - zero
        value[close] = _lgamma_about_2(z) - (np.log1p(z) if zero == 1 else 0)
    return np.where(_is_pole(x) | np.isinf(x), np.inf, value)


def _is_pole(x: Array) -> Array:
    return np.asarray((x <= 0) & (np.floor(x) == x))


def _lgamma_about_2(z: Array) -> Array:
    """Return lgamma(2 + z) by Taylor's series (DLMF 5.7.3)."""
    terms = [_zeta(k, np.longdouble(2)) / k for k in range(2, 25)]
    return np.asarray(z * (1 - _EULER) + _sum_powers(terms, -z) * z * z)


def _sum_powers(terms: Sequence[Any], x: Array) -> Array:
    """Return terms[0] + terms[1] x + terms[2] x**2 + ..."""
    total = np.zeros_like(x)
    for term in reversed(terms):
        total = total * x + term
    return total


@cache
def _zeta(s: int, q: np.longdouble) -> np.longdouble:
    """Return the sum of (q + k)**-s by 40 terms and the Euler-Maclaurin formula."""
    a = q + 40
    total = sum((q + k) ** -s for k in range(40)) + a ** (1 - s) / (s - 1) + a**-s / 2
    rising = np.longdouble(s)
    for k in range(2, 16, 2):
        total += _BERNOULLI[k] / math.factorial(k) * rising * a ** (1 - s - k)
        rising *= (s + k - 1) * (s + k)
    return np.longdouble(total)


# The positive zero of digamma: a float, and the rest.
_ROOT_DIGITS: Final = "1.461632144968362341262659542325721328468196"
_ROOT: Final = (
    np.longdouble(float(_ROOT_DIGITS)),
    np.longdouble(str(Decimal(_ROOT_DIGITS) - Decimal(float(_ROOT_DIGITS)))),
)


def digamma(x: Array) -> Bounded:
    """Return the derivative of lgamma; below 0 with an allowance, as for lgamma."""
    at = wide(x)
    value = _digamma(at)
    room = np.where(at < 0, 16 + 8 * np.log1p(np.abs(at)), 0)
    return Bounded(value, np.where(np.isfinite(value), room, 0) * epsilon(x))


def _digamma(x: Array) -> Array:
    y, total = x.copy(), np.zeros_like(x)
    for _ in range(_STEPS):
        low = y < _FAR
        if not low.any():
            break
        total = np.where(low, total + 1 / y, total)
        y = np.where(low, y + 1, y)
    square = 1 / (y * y)
    series = _sum_powers([_BERNOULLI[k] / k for k in range(2, 25, 2)], square) * square
    value = np.asarray(np.log(y) - 0.5 / y - series - total)
    close = np.abs(x - _ROOT[0]) < 0.05
    value[close] = _sum_powers(_ROOT_SERIES, (x[close] - _ROOT[0]) - _ROOT[1])
    return np.where(_is_pole(x) & (x < 0) | (x == -np.inf), np.nan, value)


_ROOT_SERIES: Final = [(-1) ** (k + 1) * _zeta(k + 1, _ROOT[0] + _ROOT[1]) for k in range(1, 25)]
_ROOT_SERIES.insert(0, np.longdouble(0))


@np.errstate(all="ignore")  # at the poles
def polygamma(x: Array, *, n: int) -> Bounded:
    """Return the n-th derivative of digamma; below 0, for even n, with an allowance."""
    at = wide(x)
    y, total, size = at.copy(), np.zeros_like(at), np.zeros_like(at)
    factor = np.longdouble(math.factorial(n))
    for _ in range(_STEPS + 20):
        low = y < _FAR + 20
        if not low.any():
            break
        term = factor / math.prod([y] * (n + 1))
        total = np.where(low, total + term, total)
        size = np.where(low, size + np.abs(term), size)
        y = np.where(low, y + 1, y)
    inverse = 1 / y
    terms = [
        _BERNOULLI[k] * math.factorial(k + n - 1) / math.factorial(k) for k in range(2, 25, 2)
    ]
    later = _sum_powers(terms, inverse * inverse) * inverse * inverse
    series = (factor / n + factor / 2 * inverse + later) * inverse**n
    value = np.asarray((-1) ** (n + 1) * (total + series))
    pole = np.inf if n % 2 else -np.inf
    value = np.where(_is_pole(at) & (at < 0), pole, value)
    value = np.where(at == -np.inf, np.nan, value)
    room = np.where((at < 0) & np.isfinite(value), 8 * size, 0)
    return Bounded(value, room * epsilon(x))
