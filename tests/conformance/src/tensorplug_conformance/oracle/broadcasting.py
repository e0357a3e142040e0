"""References for shapes given as arrays."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def broadcast_args(s0: Array, s1: Array) -> Array:
    """From the last size to the first; a missing one is 1."""
    pairs = zip_longest(s0.tolist()[::-1], s1.tolist()[::-1], fillvalue=1)
    return np.array([b if a == 1 else a for a, b in pairs][::-1], dtype=s0.dtype)
