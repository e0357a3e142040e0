"""The incomplete gamma functions.

Four formulas, each where it loses no accuracy: the power series of P (DLMF 8.11.4); that of Q for
small x (8.7.3, without its 1); Legendre's continued fraction of Q (8.9.2); and otherwise, for the
smaller of P and Q, Gauss-Legendre quadrature of the integral from x on, as far as the integrand
falls to e**-40. The number of steps is fixed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_science.special.evaluation import are_few, column, piecewise
from tensorplug_science.special.gamma_formulas import (
    lgamma_of_1_plus,
    lgamma_right,
    stirling_remainder,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE: Final = 15.0  # from this a on the integral serves below x = a
FAR: Final = 24.0  # from this x on it serves above
SMALL: Final = 1.5  # up to this x its series
SERIES_TERMS: Final = 72
FRACTION_TERMS: Final = 64
SMALL_TERMS: Final = 24
_FALL: Final = 40.0
# Nodes of the rule below 1/2, and their weights, for an interval from 0 to 1; the others lie
# symmetrically. It has 36, of which 18 are here.
NODES: Final = (
    (0.001084768757957082, 0.0027828598321225227),
    (0.005706760548893881, 0.006457973642032787),
    (0.013986154475151025, 0.010090757648867736),
    (0.025863507800246228, 0.01364931074928439),
    (0.04125111274217047, 0.017106905385153616),
    (0.060035099554801435, 0.020437875461822446),
    (0.08207641650376235, 0.02361754174513299),
    (0.10721188493389675, 0.02662235698887996),
    (0.1352554142032217, 0.02943007212266241),
    (0.16599938170723946, 0.03201989867750774),
    (0.19921617093200975, 0.034372661917868225),
    (0.23465985703687742, 0.03647094250282653),
    (0.27206802778328987, 0.038299205322935334),
    (0.3111637264401554, 0.0398439144560358),
    (0.35165750232798587, 0.04109363335216985),
    (0.39324955384156723, 0.042039109489830966),
    (0.4356319480953076, 0.04267334286966931),
    (0.4784909007631457, 0.042991637835197376),
)
_ALL_NODES: Final = np.array([node for half, _ in NODES for node in (half, 1.0 - half)])
_ALL_WEIGHTS: Final = np.repeat([weight for _, weight in NODES], 2)


def gammainc(xp: Any, a: Any, x: Any) -> Any:
    """Return P(a, x)."""
    lower, part = _compute_part(xp, a, x)
    return _bounded(xp, a, x, xp.where(lower, part, 1.0 - part), 0.0)


def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """Return Q(a, x) = 1 - P(a, x)."""
    lower, part = _compute_part(xp, a, x)
    return _bounded(xp, a, x, xp.where(lower, 1.0 - part, part), 1.0)


def _bounded(xp: Any, a: Any, x: Any, value: Any, at_0: float) -> Any:
    """Return ``value`` with the limits at 0 and infinity, and NaN outside."""
    endless = (x == math.inf) | (a == 0.0)
    value = xp.where(endless, 1.0 - at_0, xp.where((x == 0.0) | (a == math.inf), at_0, value))
    both = ((x == math.inf) & (a == math.inf)) | ((x == 0.0) & (a == 0.0))
    inside = (a >= 0.0) & (x >= 0.0)
    return xp.where(inside, xp.where(both, math.nan, value), math.nan)


def _compute_part(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Return whether P is computed (else Q), and its value."""
    lower = is_lower(xp, a, x)
    by_integral = (lower & (a >= WHOLE)) | (~lower & (x >= FAR))
    density = xp.exp(log_density(xp, a, x))
    choices = ((by_integral, _integral), (lower, _series), (x < SMALL, _small))
    return lower, piecewise(xp, choices, _fraction, a, x, lower, density)


def _integral(xp: Any, a: Any, x: Any, lower: Any, density: Any) -> Any:
    (total,) = integrate(xp, a, x, lower, lambda _: ())
    return density * (a / x) * total


def _series(_xp: Any, a: Any, x: Any, _lower: Any, density: Any) -> Any:
    """Return the density times 1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ..."""
    total: Any = 1.0
    for n in range(SERIES_TERMS, 0, -1):
        total = 1.0 + total * (x / (a + float(n)))
    return density * total


def _fraction(_xp: Any, a: Any, x: Any, _lower: Any, density: Any) -> Any:
    result = x - a + (2.0 * FRACTION_TERMS + 1.0)
    for n in range(FRACTION_TERMS, 0, -1):
        result = x - a + (2.0 * n - 1.0) - n * (float(n) - a) / result
    return density * a / result


def _small(xp: Any, a: Any, x: Any, _lower: Any, _density: Any) -> Any:
    total: Any = 0.0
    for n in range(SMALL_TERMS, 0, -1):
        total = (1.0 / (a + float(n)) + total) * (-x / float(n))
    exponent = a * xp.log(x) - log_factorial(xp, a)
    return -xp.expm1(exponent) - xp.exp(exponent) * a * total


def is_lower(xp: Any, a: Any, x: Any) -> Any:
    """Return whether P is the one to compute."""
    # Below 1/2, where both may be tiny, the smaller one is told by the size of x**a.
    lower = xp.where(x < 0.5, a * xp.log(x) < -0.4, x < 1.1 * a)
    return xp.where(a >= WHOLE, x < a, lower)


def log_density(xp: Any, k: Any, mean: Any) -> Any:
    """Return ``k ln(mean) - mean - lgamma(k + 1)``, of a Poisson variable for a whole k.

    From 3 on it is Stirling's formula and the deviance.
    """
    many = xp.where(k < 3.0, 3.0, k)
    far = -0.5 * xp.log(many * (2.0 * math.pi)) - stirling_remainder(many)
    far = far - deviance(xp, many, mean, many - mean)
    return xp.where(k < 3.0, k * xp.log(mean) - mean - log_factorial(xp, k), far)


def log_factorial(xp: Any, k: Any) -> Any:
    """Return ``lgamma(k + 1)`` for k >= 0, accurate also near 0."""
    tiny = k < 0.5
    near = lgamma_of_1_plus(xp.where(tiny, k, 0.0))
    return xp.where(tiny, near, lgamma_right(xp, k + 1.0))


def deviance(xp: Any, k: Any, mean: Any, off: Any) -> Any:
    """Return ``k ln(k / mean) - off`` for ``off = k - mean``, without cancellation.

    C. Loader, "Fast and accurate computation of binomial probabilities", 2000.
    """
    v = off / (k + mean)
    near = xp.abs(v) < 0.3
    bounded = xp.where(near, v, 0.0)
    square = bounded * bounded
    series: Any = 2.0 / 33.0
    for odd in range(31, 1, -2):
        series = 2.0 / odd + square * series
    close = off * bounded + k * bounded * (square * series)
    return xp.where(near, close, k * xp.log(k / mean) - off)


def integrate(
    xp: Any, a: Any, x: Any, lower: Any, factors: Callable[[Any], tuple[Any, ...]]
) -> list[Any]:
    """Return the integral of (t / x)**(a - 1) e**(x - t) from x on, downwards or upwards.

    More integrals follow, with each of the ``factors`` of t / x - 1.
    """
    sign = xp.where(lower, -1.0, 1.0)
    slope = sign * ((a - 1.0) - x) / x
    bend = (a - 1.0) / (x * x)
    # The exponent is below the parabola by slope and bend downwards, above it upwards. Newton's
    # method approaches the point where it is -_FALL from beyond.
    length = 2.0 * _FALL / (xp.sqrt(slope * slope + 2.0 * bend * _FALL) - slope)
    for _ in range(3):
        length = xp.where(lower & (length > 0.999 * x), 0.999 * x, length)
        u = sign * length / x
        here = slope * length - (a - 1.0) * less_log1p(xp, u)
        steep = slope - bend * x * u * sign / (1.0 + u)
        length = length - (here + _FALL) / steep
    length = xp.where(lower & (length > 0.999 * x), 0.999 * x, length)

    def integrands(s: Any) -> list[Any]:
        u = sign * s / x
        whole = xp.exp(slope * s - (a - 1.0) * less_log1p(xp, u))
        return [whole, *(whole * factor for factor in factors(u))]

    return integrals(xp, integrands, length)


def integrals(xp: Any, integrands: Callable[[Any], list[Any]], length: Any) -> list[Any]:
    """Return integrals from 0 to ``length``, by the Gauss-Legendre rule.

    All nodes of a few elements are taken at once.
    """
    if are_few(xp, length, len(_ALL_NODES)):
        nodes, weights = (column(xp, numbers, length) for numbers in (_ALL_NODES, _ALL_WEIGHTS))
        found = integrands(length * nodes)
        return [xp.sum(weights * part, axis=0) * length for part in found]
    totals: list[Any] = []
    for half, weight in NODES:
        for node in (half, 1.0 - half):
            parts = [weight * part for part in integrands(length * node)]
            totals = [t + p for t, p in zip(totals, parts, strict=True)] if totals else parts
    return [total * length for total in totals]


def less_log1p(xp: Any, u: Any) -> Any:
    """Return ``u - log1p(u)``, also where they are nearly equal."""
    near = xp.abs(u) < 0.25
    bounded = xp.where(near, u, 0.0)
    v = bounded / (2.0 + bounded)
    square = v * v
    series: Any = 0.0
    for odd in range(17, 1, -2):
        series = 1.0 / odd + square * series
    close = v * (bounded - 2.0 * square * series)
    return xp.where(near, close, u - xp.log1p(u))
