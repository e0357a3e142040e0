"""References for the sigmoid-weighted linear unit and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, finfo

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def silu(x: Array) -> Array:
    """x / (1 + e**-x), or 0 where the power is infinite."""
    z = wide(x)
    with np.errstate(all="ignore"):
        below = 1 + np.exp(-z)
        return np.asarray(np.where(np.isinf(below), -np.longdouble(0), z / below))


def silu_grad(dy: Array, x: Array) -> Bounded:
    """Dy times s * (1 + x * (1 - s)), s the sigmoid; errors are relative to the larger of both."""
    z = np.clip(wide(x), -1000, 1000)
    with np.errstate(all="ignore"):
        small = np.exp(-np.abs(z))
        rise = np.where(z >= 0, 1, small) / (1 + small)
        fall = np.where(z >= 0, small, 1) / (1 + small)
        value = wide(dy) * (rise * (1 + z * fall))
        larger = np.abs(wide(dy)) * rise * np.maximum(1, np.abs(z) * fall)
        size = np.where(np.isfinite(value), larger, 0)
        least = finfo(x.dtype).smallest_subnormal  # of a slope, which dy multiplies
        room = size * (12 * epsilon(x)) + 2 * least * np.maximum(1, np.abs(wide(dy)))
        return Bounded(value, np.where(np.isfinite(value), room, 0))
