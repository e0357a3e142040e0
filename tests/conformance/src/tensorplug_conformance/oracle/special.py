"""The reference for the complement of the error function, in wide arithmetic.

By the trapezoidal rule on an integral, which converges exponentially, where the kernels have
rational functions. (DLMF 7.7.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_conformance.corpus import wide

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array

_PI: Final = np.longdouble("3.14159265358979323846264338327950288")
_STEP: Final = np.longdouble(0.375)  # of the rule; its error is exp(-(pi / step)**2)


def scaled_tail(x: Array) -> Array:
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


def erf_series(x: Array) -> Array:
    """Return erf(x) for |x| <= 1/2 (DLMF 7.6.1)."""
    total, term = x.copy(), x.copy()
    for k in range(1, 20):
        term = -term * x * x / k
        total = total + term / (2 * k + 1)
    return np.asarray(2 / np.sqrt(_PI) * total)


def erfc(x: Array) -> Array:
    """Return 1 - erf(x)."""
    at = wide(x)
    size = np.abs(at)
    tail = scaled_tail(np.clip(size, 0.5, 200)) * np.exp(-np.minimum(size * size, 12000))
    value = np.where(at < 0, 2 - tail, tail)
    small = 1 - erf_series(np.clip(at, -0.5, 0.5))
    return np.where(np.isnan(at), np.nan, np.where(size < 0.5, small, value))
