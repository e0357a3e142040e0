"""References for special functions, in wide arithmetic.

None of them uses the formulas of the kernels, which are rational functions: gamma functions by
recurrence and Stirling's series, or a Taylor series at a zero; error functions by the trapezoidal
rule on an integral, which converges exponentially; inverses by Newton's method. (DLMF 5.5, 5.7,
5.11, 7.7.)
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array

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


# Gamma functions ---------------------------------------------------------------------------


def lgamma(x: Array) -> Bounded:
    """Return ln |gamma(x)|; below -1/2, near zeros, with an allowance for the terms' errors."""
    at = wide(x)
    value = _lgamma(at)
    room = np.where(at < -0.5, 8 * (1 + np.abs(_lgamma(np.abs(at)))), 0)
    return Bounded(value, room * epsilon(x))


def _lgamma(x: Array) -> Array:
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


# Incomplete gamma functions ----------------------------------------------------------------


def igamma(a: Array, x: Array) -> Bounded:
    """Return P(a, x), with an allowance for rounding an exponent as large as the logarithm."""
    return _incomplete(a, x, 0)


def igammac(a: Array, x: Array) -> Bounded:
    """Return Q(a, x) likewise."""
    return _incomplete(a, x, 1)


def _incomplete(a: Array, x: Array, which: int) -> Bounded:
    """Return P or Q by the series below a + 1, else by the continued fraction (DLMF 8.9.2)."""
    s, at = np.broadcast_arrays(wide(a), wide(x))
    ordinary = (s > 0) & (at > 0) & np.isfinite(s) & np.isfinite(at)
    p, y = np.where(ordinary, s, 1), np.where(ordinary, at, 1)
    log_density = p * np.log(y) - y - _lgamma(p + 1)
    below = y < p + 1
    factor = np.empty_like(p)
    factor[below] = _sum_series(p[below], y[below])
    factor[~below] = p[~below] / _continue_fraction(p[~below], y[~below])
    part = np.exp(log_density) * factor
    value = np.where(below == (which == 0), part, 1 - part)
    limit = np.where((s == 0) | np.isinf(at), 1 - which, which)
    undefined = ((s == 0) & (at == 0)) | (np.isinf(s) & np.isinf(at))
    undefined |= ~((s >= 0) & (at >= 0))
    value = np.where(undefined, np.nan, np.where(ordinary, value, limit))
    room = np.abs(log_density) * value + np.minimum(value, 1 - part)
    room = np.where(undefined, 0, 8 * room)
    eps = epsilon(x)
    return Bounded(np.asarray(value), np.where(np.isfinite(room), room, 0) * eps)


def _sum_series(a: Array, x: Array) -> Array:
    """Return 1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ... for x below a + 1."""
    total = np.ones_like(a)
    for n in range(40 + 12 * math.isqrt(int(np.max(a, initial=1))), 0, -1):
        total = 1 + total * x / (a + n)
    return total


def _continue_fraction(a: Array, x: Array) -> Array:
    """Return Legendre's fraction for x from a + 1 on."""
    steps = 160 + 4 * math.isqrt(int(np.max(a, initial=1)))
    result = x - a + 2 * steps + 1
    for n in range(steps, 0, -1):
        result = x - a + (2 * n - 1) - n * (n - a) / result
    return result


# Incomplete beta function ------------------------------------------------------------------


def betainc(a: Array, b: Array, x: Array) -> Bounded:
    """Return I(a, b, x) by the continued fraction of DLMF 8.17.22; its bound is as for P and Q."""
    p, q, at = np.broadcast_arrays(wide(a), wide(b), wide(x))
    ordinary = (p > 0) & (q > 0) & (at > 0) & (at < 1) & np.isfinite(p) & np.isfinite(q)
    one = np.longdouble(1)
    p, q, at = np.where(ordinary, p, one), np.where(ordinary, q, one), np.where(ordinary, at, 0.5)
    log_density = p * np.log(at) + q * np.log1p(-at)
    log_density = log_density - (_lgamma(p) + _lgamma(q) - _lgamma(p + q))
    upper = at >= (p + 1) / (p + q + 2)
    p, q, at = np.where(upper, q, p), np.where(upper, p, q), np.where(upper, 1 - at, at)
    fraction = np.ones_like(at)
    for m in range(48 + 4 * math.isqrt(int(np.max(p + q, initial=1))), 0, -1):
        even = m * (q - m) * at / ((p + 2 * m - 1) * (p + 2 * m))
        odd = -(p + m) * (p + q + m) * at / ((p + 2 * m) * (p + 2 * m + 1))
        fraction = 1 + even / (1 + odd / fraction)
    fraction = 1 - (p + q) * at / (p + 1) / fraction
    part = np.exp(log_density) / p / fraction
    value = np.where(upper, 1 - part, part)
    value = np.where(ordinary, value, _limit_of_betainc(a, b, x))
    room = np.abs(log_density) * np.abs(part) + np.minimum(value, part)
    room = np.where(ordinary, 8 * room, 0) * epsilon(x)
    return Bounded(np.asarray(value), np.where(np.isfinite(room), room, 0))


def _limit_of_betainc(a: Array, b: Array, x: Array) -> Array:
    """Return I(a, b, x) at both ends, and where the whole distribution lies at its mean."""
    p, q, at = np.broadcast_arrays(a, b, x)
    outside = ~((p >= 0) & (q >= 0) & (at >= 0) & (at <= 1))
    undefined = outside | ((p == 0) & (q == 0)) | (np.isinf(p) & np.isinf(q))
    low = (p == 0) | np.isinf(q)  # all of it lies at 0
    inner = np.where(low, 1.0, 0.0)
    value = np.where(at == 0, 0.0, np.where(at == 1, 1.0, inner))
    return np.where(undefined, np.nan, value)


# Error functions ---------------------------------------------------------------------------

_STEP: Final = np.longdouble(0.375)  # of the rule; its error is exp(-(pi / step)**2)


def _scaled_tail(x: Array) -> Array:
    """Return erfcx(x) for x >= 1/2: x / pi times the integral of exp(-t**2) / (x**2 + t**2)."""
    square = x * x
    total = 0.5 / square
    for n in range(1, 20):
        place = (n * _STEP) ** 2
        total = total + np.exp(-place) / (square + place)
    # The residue of the pole at i x; beyond 6 it is less than the rule's error.
    near = np.minimum(x, 6)
    residue = 2 * np.exp(near * near) / np.expm1(2 * _PI * near / _STEP)
    return np.asarray(x * 2 * _STEP / _PI * total - np.where(x < 6, residue, 0))


def _erf_series(x: Array) -> Array:
    """Return erf(x) for |x| <= 1/2 (DLMF 7.6.1)."""
    total, term = x.copy(), x.copy()
    for k in range(1, 20):
        term = -term * x * x / k
        total = total + term / (2 * k + 1)
    return np.asarray(2 / np.sqrt(_PI) * total)


def erfcx(x: Array) -> Array:
    """Return exp(x**2) erfc(x)."""
    at = wide(x)
    size = np.abs(at)
    far = _scaled_tail(np.maximum(size, 0.5))
    far = np.where(np.isinf(size), 0, far)
    square = np.minimum(at * at, 12000)
    small = np.exp(square) * (1 - _erf_series(np.clip(at, -0.5, 0.5)))
    value = np.where(at < 0, 2 * np.exp(square) - far, far)
    return np.where(np.isnan(at), np.nan, np.where(size < 0.5, small, value))


def erfc(x: Array) -> Array:
    """Return 1 - erf(x)."""
    at = wide(x)
    size = np.abs(at)
    tail = _scaled_tail(np.clip(size, 0.5, 200)) * np.exp(-np.minimum(size * size, 12000))
    value = np.where(at < 0, 2 - tail, tail)
    small = 1 - _erf_series(np.clip(at, -0.5, 0.5))
    return np.where(np.isnan(at), np.nan, np.where(size < 0.5, small, value))


def _invert_erfc(q: Array) -> Array:
    """Return y > 0 with erfc(y) = q for 0 < q <= 3/4, by Newton's method on ln erfc."""
    log_q = np.log(q)
    y = np.sqrt(np.maximum(-log_q, 0.05))
    for _ in range(8):  # the error squares itself: it is 1e-13 after four steps
        scaled = erfcx(y)
        error = np.log(scaled) - y * y - log_q
        y = np.maximum(y + error * scaled * np.sqrt(_PI) / 2, 0.05)
    return np.asarray(y)


def _invert_erf(x: Array) -> Array:
    """Return y with erf(y) = x for |x| <= 1/2."""
    y = x * np.sqrt(_PI) / 2
    for _ in range(5):
        y = y - (_erf_series(y) - x) * np.exp(y * y) * np.sqrt(_PI) / 2
    return np.asarray(y)


def _join_inverse(x: Array, complement: Array) -> Array:
    """Return the inverse of erf at ``x``, 1 - |x| being ``complement``."""
    central = _invert_erf(np.clip(x, -0.5, 0.5))
    tail = _invert_erfc(np.clip(complement, np.finfo(np.longdouble).tiny, 0.5))
    value = np.where(np.abs(x) < 0.5, central, np.copysign(tail, x))
    value = np.where(complement == 0, np.copysign(np.inf, x), value)
    return np.where((complement >= 0) & (complement <= 1), value, np.nan)


def erfinv(x: Array) -> Array:
    """Return y with erf(y) = x."""
    at = wide(x)
    return _join_inverse(at, 1 - np.abs(at))


def ndtri(x: Array) -> Array:
    """Return y at which the normal distribution function is x."""
    at = wide(x)
    complement = 2 * np.where(at < 0.5, at, 1 - at)
    return np.asarray(np.sqrt(np.longdouble(2)) * _join_inverse(2 * at - 1, complement))
