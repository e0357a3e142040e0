"""References for the Gaussian error linear unit, with bounds on what rounding may do.

Far below 0 few digits are required: errors are relative to those of 1 + erf, which
decompositions use.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.oracle.reduction import epsilon

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array

_HALF = np.longdouble("0.5")


def gelu(x: Array, *, approximate: bool = False) -> Bounded:
    """x times the normal distribution function; 0 at minus infinity."""
    z = wide(x)
    with np.errstate(all="ignore"):
        below = _approximate(z)[0] if approximate else _below(z)
        value = np.where(z == -np.inf, 0, z * below)
        bound = np.where(np.isfinite(z), np.abs(z), 0) * (_slack(z) * epsilon(x))
        return Bounded(value, np.where(z < -_REACH, epsilon(x), bound))


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
        size = np.where(np.isfinite(value), np.abs(wide(dy)), 0)
        slack = 4 + _slack(z)
        if approximate:  # 1 - tanh**2 loses digits where tanh is near 1 and not 1
            slack = slack + np.where(np.abs(z) < _BENT, np.abs(z) * (1 + z**2 / 8), 0)
        return Bounded(value, size * (slack * epsilon(x)))


_REACH = 100
_BENT = 8


def _slack(z: Array) -> Array:
    """Return how many roundings of 1 + erf count, those of its argument where it still changes."""
    return 4 + 4 * np.exp(-np.minimum(np.square(z), 1e4) / 8)


def _below(z: Array) -> Array:
    flat = [math.erfc(-float(number) * math.sqrt(0.5)) / 2 for number in np.ravel(z)]
    return np.reshape(np.array(flat, np.longdouble), np.shape(z))


def _approximate(z: Array) -> tuple[Array, Array]:
    """Return (1 + tanh(u)) / 2 and its derivative."""
    factor = np.sqrt(2 / (np.pi * np.longdouble(1)))
    cubic = np.longdouble("0.044715")
    side = np.tanh(factor * (z + cubic * z**3))
    return _HALF * (1 + side), _HALF * (1 - side**2) * factor * (1 + 3 * cubic * z**2)
