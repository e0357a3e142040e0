"""Reference for the sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.corpus import wide

if TYPE_CHECKING:
    from tensorplug_conformance.tables import Array


def silu(x: Array) -> Array:
    """x / (1 + e**-x), or 0 where the power is infinite."""
    z = wide(x)
    with np.errstate(all="ignore"):
        below = 1 + np.exp(-z)
        return np.asarray(np.where(np.isinf(below), -np.longdouble(0), z / below))
