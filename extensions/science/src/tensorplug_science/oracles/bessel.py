"""References for Bessel functions, in wide arithmetic.

The trapezoidal rule on Bessel's integral, which converges exponentially, or Hankel's series, where
the kernels have rational functions. (DLMF 10.9, 10.17, 10.40.)
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_conformance import Bounded, epsilon
from tensorplug_conformance.corpus import wide

if TYPE_CHECKING:
    from tensorplug_conformance import Array

_PI: Final = np.longdouble("3.14159265358979323846264338327950288")
_POINTS: Final = 56  # of half a period: the error is about J of order 112, below 1e-35
_ASYMPTOTIC: Final = 40.0


def _angles() -> Array:
    return (np.arange(_POINTS, dtype=np.longdouble) + 0.5) * (_PI / _POINTS)


def _hankel_sum(order: int, far: Array, first: int, step: int, period: int) -> Array:
    """Return the sum of a_k far**-k with alternating signs, of every ``step``-th term of 28."""
    inverse = 1 / far
    total = np.zeros_like(far)
    for k in reversed(range(first, 28, step)):
        total = total * inverse**step + (-1) ** (k // period) * _hankel_term(order, k)
    return total * inverse**first


@cache
def _hankel_term(order: int, k: int) -> np.longdouble:
    """Return a_k of Hankel's expansions (DLMF 10.17.1)."""
    term = np.longdouble(1)
    for j in range(1, k + 1):
        term = term * (4 * order * order - (2 * j - 1) ** 2) / (8 * j)
    return term


def _modified(x: Array, order: int) -> Array:
    """Return exp(-|x|) I(x): the mean of exp(|x| (cos t - 1)) cos(order t)."""
    size = np.abs(wide(x))
    near = np.minimum(size, _ASYMPTOTIC)
    total = np.zeros_like(near)
    for t in _angles():
        total = total + np.exp(near * (np.cos(t) - 1)) * np.cos(order * t)
    if order:  # the sum cancels near 0, where the power series does not
        quarter = np.minimum(size, 1) ** 2 / 4
        series = sum(quarter**k / (math.factorial(k) * math.factorial(k + 1)) for k in range(16))
        small = np.exp(-size) * size / 2 * series
    far = np.maximum(size, _ASYMPTOTIC)
    tail = _hankel_sum(order, far, 0, 1, 1)
    value = np.where(size < _ASYMPTOTIC, total / _POINTS, tail / np.sqrt(2 * _PI * far))
    return np.where(size < 1, small, value) if order else np.asarray(value)


def bessel_i0e(x: Array) -> Array:
    """Return exp(-|x|) I0(x)."""
    return _modified(x, 0)


def bessel_i1e(x: Array) -> Array:
    """Return exp(-|x|) I1(x)."""
    return np.asarray(np.copysign(1, wide(x)) * _modified(x, 1))


def _oscillating(x: Array, order: int) -> Array:
    """Return J(|x|): the mean of cos(order t - |x| sin t) over a period."""
    size = np.abs(wide(x))
    near = np.minimum(size, _ASYMPTOTIC)
    total = np.zeros_like(near)
    for t in _angles():
        total = total + np.cos(order * t - near * np.sin(t))
    far = np.maximum(np.where(np.isinf(size), 0, size), _ASYMPTOTIC)
    even = _hankel_sum(order, far, 0, 2, 2)
    odd = _hankel_sum(order, far, 1, 2, 2)
    c, s = np.cos(far), np.sin(far)
    cosine, sine = ((c + s), (s - c)) if order == 0 else ((s - c), -(s + c))
    wave = (even * cosine - odd * sine) / np.sqrt(_PI * far)
    value = np.where(size < _ASYMPTOTIC, total / _POINTS, wave)
    return np.where(np.isinf(size), 0, np.where(np.isnan(size), np.nan, value))


def _with_room(x: Array, value: Array) -> Bounded:
    """Bound the error by the wave's amplitude from 5 on; below, by this reference's error."""
    size = np.abs(wide(x))
    wave = 16 / np.sqrt(np.maximum(size, 5)) * epsilon(x)
    below = np.where(size >= 1, 64 * np.finfo(np.longdouble).eps, 0)
    return Bounded(value, np.where(size >= 5, wave, below))


def bessel_j0(x: Array) -> Bounded:
    """Return J0(x)."""
    return _with_room(x, _oscillating(x, 0))


def bessel_j1(x: Array) -> Bounded:
    """Return J1(x); near 0 by its power series, where the sum cancels."""
    at = wide(x)
    size = np.abs(at)
    quarter = -(np.minimum(size, 1) ** 2) / 4
    series = sum(quarter**k / (math.factorial(k) * math.factorial(k + 1)) for k in range(16))
    value = np.where(size < 1, size / 2 * series, _oscillating(x, 1))
    return _with_room(x, np.asarray(np.copysign(1, at) * value))
