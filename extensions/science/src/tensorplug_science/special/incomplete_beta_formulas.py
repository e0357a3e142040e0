"""The incomplete beta function.

Of I(a, b, x) and I(b, a, 1 - x), whose sum is 1, the smaller one is computed, by one of three
formulas: the continued fraction of A. R. DiDonato and A. H. Morris ("Algorithm 708", ACM TOMS 18,
1992, equation 9); where both concentrations are large, Gauss-Legendre quadrature of the integral
from x on, as far as the integrand falls to e**-40; where 1 - x is small, 1 minus the power series
of the other one (DLMF 8.17.7). The number of steps is fixed.
"""

from __future__ import annotations

import math
from typing import Any, Final

from tensorplug_science.special.evaluation import are_few, column, piecewise
from tensorplug_science.special.gamma_formulas import digamma, lgamma_right, stirling_remainder
from tensorplug_science.special.incomplete_gamma_formulas import (
    deviance,
    integrals,
    less_log1p,
    log_factorial,
)

_MANY: Final = 15.0  # from here on a concentration is large
_FRACTION_TERMS: Final = 64
_SERIES_TERMS: Final = 24
_FALL: Final = 40.0
_SMALL: Final = 0.1  # up to this 1 - x the series serves, where (1 - x) a is less than _FEW
_FEW: Final = 1.5
_STIRLING: Final = 3.0
# The Gauss-Legendre rule of 6 points for an interval from 0 to 1: nodes and weights.
_RULE: Final = tuple(
    (place, weight)
    for node, weight in (
        (0.033765242898423975, 0.08566224618958517),
        (0.16939530676686776, 0.1803807865240693),
        (0.3806904069584015, 0.23395696728634552),
    )
    for place in (node, 1.0 - node)
)


def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Return I(a, b, x)."""
    inside = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    p, q, t = (xp.where(inside, given, other) for given, other in ((a, 1.0), (b, 1.0), (x, 0.5)))
    rest = 1.0 - t
    log_t, log_rest = xp.log(t), xp.log1p(-t)
    upper = p * rest < q * t
    # Where the powers t**p or rest**q are nearly 1, they tell the smaller one, not the mean.
    upper = upper | (_is_small(q, p, t) & (p * log_t > -0.4))
    upper = upper & ~(_is_small(p, q, rest) & (q * log_rest > -0.4))
    found = _compute_part(
        xp,
        xp.where(upper, q, p),
        xp.where(upper, p, q),
        xp.where(upper, rest, t),
        xp.where(upper, t, rest),
        xp.where(upper, log_rest, log_t),
        xp.where(upper, log_t, log_rest),
    )
    return _bounded(xp, a, b, x, xp.where(inside, xp.where(upper, 1.0 - found, found), math.nan))


def _bounded(xp: Any, a: Any, b: Any, x: Any, value: Any) -> Any:
    """Return ``value`` with the limits at 0 and infinity, and NaN outside."""
    value = xp.where((a == 0.0) | (b == math.inf), 1.0, value)
    value = xp.where((b == 0.0) | (a == math.inf), 0.0, value)
    value = xp.where(x == 0.0, 0.0, xp.where(x == 1.0, 1.0, value))
    both = ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))
    possible = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    limit = xp.where((a == 0.0) & (b == math.inf), 1.0, value)
    limit = xp.where((x == 0.0) | (x == 1.0), value, limit)
    return xp.where(possible, xp.where(both, math.nan, limit), math.nan)


def _is_small(a: Any, b: Any, y: Any) -> Any:
    """Return whether the series in ``y`` gives I(a, b, 1 - y)."""
    return (y <= _SMALL) & (y * a <= _FEW) & (b <= 0.125 * a)


def _compute_part(xp: Any, a: Any, b: Any, x: Any, y: Any, log_x: Any, log_y: Any) -> Any:
    """Return I(a, b, x), for x below the mean or where the series in y = 1 - x serves."""
    choices = (
        (_is_small(a, b, y), _complement),
        ((a >= _MANY) & (b >= _MANY), _integral),
    )
    density = xp.exp(log_density(xp, a, b, x, y, log_x, log_y))
    return piecewise(xp, choices, _fraction, a, b, x, y, log_y, density)


def _integral(xp: Any, a: Any, b: Any, x: Any, y: Any, _log_y: Any, density: Any) -> Any:
    return density * (_integrate(xp, a, b, x, y, a * y - b * x) / y)


def _fraction(xp: Any, a: Any, b: Any, x: Any, y: Any, _log_y: Any, density: Any) -> Any:
    return density / _continue_fraction(xp, a, b, x, y, a * y - b * x)


def log_density(xp: Any, a: Any, b: Any, x: Any, y: Any, log_x: Any, log_y: Any) -> Any:
    """Return ``a ln(x) + b ln(y) - ln B(a, b)`` for x + y = 1, without cancellation."""
    swapped = a > b
    low, high = xp.where(swapped, b, a), xp.where(swapped, a, b)
    part, rest = xp.where(swapped, y, x), xp.where(swapped, x, y)
    log_part, log_rest = xp.where(swapped, log_y, log_x), xp.where(swapped, log_x, log_y)
    far = high >= _STIRLING
    both = low >= _STIRLING
    large = xp.where(far, high, _STIRLING)
    less = xp.where(both, low, _STIRLING)
    # Both at least 3: Stirling's formula and deviances, as for binomial probabilities.
    total = large + less
    off = less * rest - large * part
    two = 0.5 * xp.log(less * (large / total) * (0.5 / math.pi))
    two = two + stirling_remainder(total) - stirling_remainder(large) - stirling_remainder(less)
    two = two - deviance(xp, less, total * part, off) - deviance(xp, large, total * rest, -off)
    # One at least 3: Stirling's formula for it and the sum.
    few = xp.where(both, 1.0, low)
    total = large + few
    log_few = lgamma_right(xp, few + 1.0) - xp.log(few)
    one = few * (log_part + xp.log(total) - 1.0) + (large - 0.5) * xp.log1p(few / large)
    one = one + large * log_rest + stirling_remainder(total) - stirling_remainder(large) - log_few
    # None: with gamma(1 + a), which has no pole at 0.
    little = xp.where(far, 1.0, high)
    total = few + little
    none = few * log_part + little * log_rest + xp.log(few * (little / total))
    none = none + lgamma_right(xp, total + 1.0)
    none = none - lgamma_right(xp, few + 1.0) - lgamma_right(xp, little + 1.0)
    return xp.where(both, two, xp.where(far, one, none))


def _continue_fraction(xp: Any, a: Any, b: Any, x: Any, y: Any, excess: Any) -> Any:
    counts = [float(n) for n in range(_FRACTION_TERMS + 1)]
    odd = [max(2.0 * k - 1.0, 1.0) for k in counts]  # the first is multiplied by 0
    if are_few(xp, excess, len(counts)):
        k, twice = (column(xp, numbers, excess) for numbers in (counts, odd))
        here, top = _take_step(a, b, x, y, excess, k, twice)
    else:
        pairs = zip(counts, odd, strict=True)
        here, top = zip(*(_take_step(a, b, x, y, excess, k, m) for k, m in pairs), strict=True)
    result = here[_FRACTION_TERMS]
    for n in range(_FRACTION_TERMS - 1, -1, -1):
        result = here[n] + top[n] / result
    return result


def _take_step(a: Any, b: Any, x: Any, y: Any, excess: Any, k: Any, odd: Any) -> tuple[Any, Any]:
    """Return the denominator of step k, without its quotient, and the numerator of that."""
    m = k + 1.0
    here = k + (a + k) / (a + (k + m)) * (excess + 1.0 + k * (1.0 + y))
    here = here + k * ((b - k) * x) / (a + odd)
    top = ((a + k) / (a + (k + m))) * ((a + b + k) / (a + (k + m))) * (m * x) * ((b - m) * x)
    return here, top


def _integrate(xp: Any, a: Any, b: Any, x: Any, y: Any, excess: Any) -> Any:
    """Return the integral of (1 - v)**(a - 1) (1 + v x / y)**(b - 1) over v from 0 to 1."""
    odds = x / y
    slope = -(excess + (x - y)) / y
    p, q = xp.where(a < _MANY, _MANY, a) - 1.0, xp.where(b < _MANY, _MANY, b) - 1.0
    bend = p + q * odds * odds
    # Newton's method approaches the point where the exponent is -_FALL from beyond.
    length = 2.0 * _FALL / (xp.sqrt(slope * slope + 2.0 * bend * _FALL) - slope)
    for _ in range(4):
        length = xp.where(length > 0.999, 0.999, length)
        here = slope * length - p * less_log1p(xp, -length) - q * less_log1p(xp, odds * length)
        steep = slope - p * length / (1.0 - length)
        steep = steep - q * odds * (odds * length) / (1.0 + odds * length)
        length = length - (here + _FALL) / steep
    length = xp.where(length > 0.999, 0.999, length)

    def integrand(v: Any) -> list[Any]:
        return [xp.exp(slope * v - p * less_log1p(xp, -v) - q * less_log1p(xp, odds * v))]

    return integrals(xp, integrand, length)[0]


def _complement(xp: Any, a: Any, b: Any, _x: Any, y: Any, log_y: Any, _density: Any) -> Any:
    """Return 1 minus I(b, a, y) for small y, a y and b / a; elsewhere a number."""
    by_series = _is_small(a, b, y)
    a, b = xp.where(by_series, a, 8.0), xp.where(by_series, b, 1.0)
    total: Any = 0.0
    for n in range(_SERIES_TERMS, 0, -1):
        k = float(n)
        total = (1.0 / (b + k) + total) * (y * ((k - a) / k))
    # An integral of digamma gives ln gamma(a + b) - ln gamma(a) accurately for small b.
    if are_few(xp, y, len(_RULE)):
        nodes, weights = (column(xp, numbers, y) for numbers in zip(*_RULE, strict=True))
        difference = xp.sum(weights * digamma(xp, a + b * nodes), axis=0)
    else:
        difference = 0.0
        for node, weight in _RULE:
            difference = difference + weight * digamma(xp, a + b * node)
    exponent = b * (log_y + difference) - log_factorial(xp, b)
    return -xp.expm1(exponent) - xp.exp(exponent) * b * total
