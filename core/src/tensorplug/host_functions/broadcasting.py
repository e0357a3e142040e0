"""Computing with shapes that are tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

__all__ = ["broadcast_args"]


def broadcast_args(s0: Array, s1: Array) -> Array:
    """Return the shape to which two shapes, given as vectors, broadcast.

    Raises:
        ShapeError: they cannot be broadcast, or a size is negative.

    """
    rank = max(s0.size, s1.size)
    a, b = (np.concatenate([np.ones(rank - sizes.size, sizes.dtype), sizes]) for sizes in (s0, s1))
    listed = f"shapes {s0.tolist()} and {s1.tolist()}"
    if min(a.min(initial=0), b.min(initial=0)) < 0:
        raise ShapeError(f"BroadcastArgs: {listed} must not contain negative sizes")
    if np.any((a != b) & (a != 1) & (b != 1)):
        raise ShapeError(f"BroadcastArgs: {listed} cannot be broadcast together")
    return np.where(a == 1, b, a)
