"""References for searching in sorted sequences: counting, element by element."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def search_sorted(sorted_sequence: Array, values: Array, *, side: str = "left") -> Array:
    """Count the elements before the value (left), or not after it (right)."""
    result = np.empty(values.shape, np.int32)
    for at in np.ndindex(values.shape):
        row = sorted_sequence[at[:-1]] if sorted_sequence.ndim > 1 else sorted_sequence
        keys, key = [_key(number) for number in row.tolist()], _key(values[at].item())
        result[at] = sum(other < key or (side == "right" and other == key) for other in keys)
    return result


def lower_bound(sorted_sequence: Array, values: Array) -> Array:
    """From the left."""
    return search_sorted(sorted_sequence, values, side="left")


def upper_bound(sorted_sequence: Array, values: Array) -> Array:
    """From the right."""
    return search_sorted(sorted_sequence, values, side="right")


def _key(value: Any) -> tuple[bool, Any]:
    """Return sort keys of values, with all NaN equal and after everything."""
    undefined = isinstance(value, float) and isnan(value)
    return undefined, 0 if undefined else value
