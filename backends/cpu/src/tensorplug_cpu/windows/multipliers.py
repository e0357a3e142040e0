"""Several filters per channel of a depthwise convolution: as many copies of the channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array


_FEW = 16  # channels that are added one by one


def repeated(x: Array, multiplier: int) -> Array:
    """Return ``x`` with every channel repeated once per filter."""
    return x if multiplier == 1 else np.repeat(x, multiplier, axis=3)


def merged(x: Array, channels: int, multiplier: int) -> Array:
    """Return [..., C*M] summed to [..., C]."""
    if multiplier == 1:
        return x
    if multiplier > _FEW:
        return np.asarray(x.reshape(*x.shape[:3], channels, multiplier).sum(axis=4))
    total = np.zeros((*x.shape[:3], channels), x.dtype)
    for first in range(multiplier):  # starting a sum of NumPy takes longer than a few terms
        total += x[..., first::multiplier]
    return total
