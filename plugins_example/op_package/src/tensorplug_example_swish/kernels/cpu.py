"""The kernel for tensorplug-cpu, whose buffers are NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from tensorplug.plugin import KernelTable

from tensorplug_example_swish.op import SWISH

Array = np.ndarray[Any, Any]

kernels = KernelTable()


# REPLACE: the formula for NumPy.
@kernels.register(SWISH)
def swish(x: Array, *, beta: float) -> Array:
    """Compute from ``e**-|beta x|``, which cannot overflow; float16 in float32."""
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    with np.errstate(all="ignore"):  # infinities are ordinary values
        scaled = wide * beta
        small = np.exp(-np.abs(scaled))
        below = np.where(np.isneginf(wide), 0, wide) * small  # -inf * 0 would be NaN
        result = np.where(scaled < 0, below, wide) / (1 + small)
        return np.asarray(result, x.dtype)  # NumPy returns a scalar for rank 0
