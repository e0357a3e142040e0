"""References for diagonals and bands: element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def diag(x: Array) -> Array:
    """``out[i, i] = x[i]`` for an index i of all axes."""
    out = np.zeros(x.shape * 2, dtype=x.dtype)
    for at in np.ndindex(x.shape):
        out[at + at] = x[at]
    return out


def band(input: Array, num_lower: Array, num_upper: Array) -> Array:
    """Zero where i - j is more than the lower number, or j - i more than the upper."""
    lower, upper = num_lower.item(), num_upper.item()
    out = np.zeros(input.shape, dtype=input.dtype)
    for at in np.ndindex(input.shape):
        i, j = at[-2:]
        if (lower < 0 or i - j <= lower) and (upper < 0 or j - i <= upper):
            out[at] = input[at]
    return out


def triangle(x: Array, *, upper: bool = False, k: int = 0) -> Array:
    """Zero below, or above, diagonal k."""
    out = np.zeros(x.shape, dtype=x.dtype)
    for at in np.ndindex(x.shape):
        if at[-1] - at[-2] >= k if upper else at[-1] - at[-2] <= k:
            out[at] = x[at]
    return out
