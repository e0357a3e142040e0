"""References for Fourier transforms: the sums of the definition, in wide numbers.

Complex sums of more than 64 terms are split by the smallest factor of their length.

Each is bounded by eps * (log2(n) + 1) * 2 * sum of |terms|; the 2 is for complex products.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array

_SHORT: Final = 64  # terms of a sum that is not split


def _waves(n: int, times: int, frequencies: int, sign: int) -> Array:
    """Return exp(sign 2 pi i j k / n) for times j and frequencies k."""
    angle = np.arange(n, dtype=np.longdouble) * (2 * np.arccos(np.longdouble(-1)) / n)
    circle = np.cos(angle) + sign * 1j * np.sin(angle)
    return np.asarray(circle[np.outer(np.arange(times), np.arange(frequencies)) % n])


def _transformed(x: Array, sign: int) -> Array:
    """Return the sums over j of x[j] exp(sign 2 pi i j k / n)."""
    n = x.shape[-1]
    factor = next((p for p in range(2, math.isqrt(n) + 1) if n % p == 0), n)
    if n <= _SHORT or factor == n:
        return x @ _waves(n, n, n, sign)
    # j = factor b + a and k = (n / factor) d + c: sum over b first, then over a.
    inner = _transformed(np.moveaxis(x.reshape(*x.shape[:-1], -1, factor), -1, -2), sign)
    turned = inner * _waves(n, factor, n // factor, sign)
    outer = np.moveaxis(turned, -1, -2) @ _waves(factor, factor, factor, sign)
    return np.moveaxis(outer, -1, -2).reshape(x.shape)


def _bounded(value: Array, terms: Array, n: int, dtype: np.dtype[Any]) -> Bounded:
    """Bound each element by the sum of all |terms| of its row."""
    eps = np.longdouble(finfo(dtype).eps)
    total = np.abs(terms).sum(axis=-1, keepdims=True)
    bound = np.broadcast_to(total, value.shape) * eps * 2 * (levels(n) + 1)
    return Bounded(value, bound)


def fft(input: Array) -> Bounded:
    """Sum over j of x[j] exp(-2 pi i j k / n)."""
    n = input.shape[-1]
    x = input.astype(np.clongdouble)
    return _bounded(_transformed(x, -1), x, n, input.dtype)


def ifft(input: Array) -> Bounded:
    """Sum over k of x[k] exp(2 pi i j k / n) / n."""
    n = input.shape[-1]
    x = input.astype(np.clongdouble) / n
    return _bounded(_transformed(x, 1), x, n, input.dtype)


def _resized(x: Array, length: int) -> Array:
    filled = np.zeros((*x.shape[:-1], length), x.dtype)
    kept = min(length, x.shape[-1])
    filled[..., :kept] = x[..., :kept]
    return filled


def rfft(input: Array, *, fft_length: int | None = None) -> Bounded:
    """The first half of ``fft``; float16 is transformed in float32."""
    n = input.shape[-1] if fft_length is None else fft_length
    x = _resized(input.astype(np.clongdouble), n)
    dtype = np.dtype(np.float64 if input.dtype == np.float64 else np.float32)
    return _bounded(_transformed(x, -1)[..., : n // 2 + 1], x, n, dtype)


def irfft(input: Array, *, fft_length: int | None = None) -> Bounded:
    """Sum over the half spectrum: each inner element stands for itself and its conjugate."""
    n = 2 * (input.shape[-1] - 1) if fft_length is None else fft_length
    half = n // 2 + 1
    x = _resized(input.astype(np.clongdouble), half)
    weights = np.full(half, 2, np.longdouble)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    terms = x * weights / n
    waves = _waves(n, half, n, 1)
    value = terms.real @ waves.real - terms.imag @ waves.imag
    return _bounded(value, terms, n, input.dtype)
