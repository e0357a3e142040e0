"""References for the Gaussian error linear unit, with bounds on what rounding may do.

Far below 0, small results must be accurate too: errors are relative to the larger term.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, finfo

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def gelu(x: Array, *, approximate: bool = False) -> Bounded:
    """x times the normal distribution function; 0 at minus infinity."""
    z = wide(x)
    with np.errstate(all="ignore"):
        below = _approximate(z)[0] if approximate else _below(z)
        value = np.where(z == -np.inf, 0, z * below)
        return Bounded(value, _room(x, z, np.abs(value), 1))


def gelu_grad(dy: Array, x: Array, *, approximate: bool = False) -> Bounded:
    """Dy times the distribution function plus x times its slope."""
    z = np.clip(wide(x), -_REACH, _REACH)
    with np.errstate(all="ignore"):
        if approximate:
            below, slope = _approximate(z)
        else:
            below = _below(z)
            slope = np.exp(-z * z / 2) / np.sqrt(2 * np.pi * np.longdouble(1))
        value = wide(dy) * (below + z * slope)
        larger = np.abs(wide(dy)) * np.maximum(below, np.abs(z) * slope)
        return Bounded(value, _room(x, z, np.where(np.isfinite(value), larger, 0), wide(dy)))


_REACH = 100


def _room(x: Array, z: Array, size: Array, factor: Any) -> Array:
    """Return the error allowed: relative to the size, and more where the exponent is large.

    A rounding of x changes the result by that much. Slopes may be subnormal.
    """
    slack = np.where(z < 0, 16 + 2 * np.minimum(np.square(z), 1e4), 16)
    least = 4 * finfo(x.dtype).smallest_subnormal * np.maximum(1, np.abs(factor))
    room = size * (slack * epsilon(x)) + least * np.maximum(1, np.minimum(np.abs(z), _REACH))
    return np.where(np.isfinite(room), room, 0)


def _below(z: Array) -> Array:
    flat = [math.erfc(-float(number) * math.sqrt(0.5)) / 2 for number in np.ravel(z)]
    return np.reshape(np.array(flat, np.longdouble), np.shape(z))


def _approximate(z: Array) -> tuple[Array, Array]:
    """Return (1 + tanh(u)) / 2, as e**u / (e**u + e**-u), and its derivative."""
    factor = np.sqrt(2 / (np.pi * np.longdouble(1)))
    cubic = np.longdouble("0.044715")
    u = np.clip(factor * (z + cubic * z**3), -5000, 5000)
    half = 1 / (np.exp(u) + np.exp(-u))
    return np.exp(u) * half, 2 * half**2 * factor * (1 + 3 * cubic * z**2)
