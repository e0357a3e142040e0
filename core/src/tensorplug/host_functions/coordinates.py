"""Coordinates of nonzero elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

__all__ = ["where"]


def where(condition: Array) -> Array:
    """Return the coordinates of nonzero elements, ``[n, rank]``."""
    rank = condition.ndim
    if rank == 0:
        return np.empty((int(bool(condition)), 0), np.int32)
    positions = np.flatnonzero(condition)
    result = np.empty((len(positions), rank), np.int32)
    for axis in range(rank - 1, 0, -1):
        positions, result[:, axis] = np.divmod(positions, condition.shape[axis])
    result[:, 0] = positions
    return result
