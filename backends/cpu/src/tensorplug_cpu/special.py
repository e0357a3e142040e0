"""Special functions that NumPy lacks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array

__all__ = ["erf"]

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """Return the error function of a float array of any floating dtype."""
    return np.asarray(_erf(x)).astype(x.dtype)
