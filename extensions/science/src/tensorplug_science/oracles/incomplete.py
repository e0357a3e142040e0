"""References for incomplete gamma and beta functions, in wide arithmetic.

Series and continued fractions of as many terms as they need. (DLMF 8.9, 8.17.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance import Bounded, epsilon
from tensorplug_conformance.corpus import wide

if TYPE_CHECKING:
    from tensorplug_conformance import Array

from tensorplug_science.oracles.gamma import log_gamma


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
    log_density = p * np.log(y) - y - log_gamma(p + 1)
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


def betainc(a: Array, b: Array, x: Array) -> Bounded:
    """Return I(a, b, x) by the continued fraction of DLMF 8.17.22; its bound is as for P and Q."""
    p, q, at = np.broadcast_arrays(wide(a), wide(b), wide(x))
    ordinary = (p > 0) & (q > 0) & (at > 0) & (at < 1) & np.isfinite(p) & np.isfinite(q)
    one = np.longdouble(1)
    p, q, at = np.where(ordinary, p, one), np.where(ordinary, q, one), np.where(ordinary, at, 0.5)
    log_density = p * np.log(at) + q * np.log1p(-at)
    log_density = log_density - (log_gamma(p) + log_gamma(q) - log_gamma(p + q))
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
