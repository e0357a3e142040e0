"""References for error functions and their inverses, in wide arithmetic.

erfcx by the pieces of the suite's own reference of erfc; inverses by Newton's method. (DLMF 7.7.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_conformance.corpus import wide
from tensorplug_conformance.oracle.special import erf_series, scaled_tail

if TYPE_CHECKING:
    from tensorplug_conformance import Array

_PI: Final = np.longdouble("3.14159265358979323846264338327950288")


def erfcx(x: Array) -> Array:
    """Return exp(x**2) erfc(x)."""
    at = wide(x)
    size = np.abs(at)
    far = scaled_tail(np.maximum(size, 0.5))
    far = np.where(np.isinf(size), 0, far)
    square = np.minimum(at * at, 12000)
    small = np.exp(square) * (1 - erf_series(np.clip(at, -0.5, 0.5)))
    value = np.where(at < 0, 2 * np.exp(square) - far, far)
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
        y = y - (erf_series(y) - x) * np.exp(y * y) * np.sqrt(_PI) / 2
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
