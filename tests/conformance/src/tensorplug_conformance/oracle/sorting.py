"""References for order."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def top_k(x: Array, *, k: int = 1, sorted: bool = True) -> tuple[Array, Array]:
    """Largest first, the lowest index among equals, NaN before everything."""
    del sorted  # the result is sorted in any case
    values = np.empty((*x.shape[:-1], k), dtype=x.dtype)
    indices = np.empty((*x.shape[:-1], k), dtype=np.int32)
    for at in np.ndindex(x.shape[:-1]):
        row = x[at].tolist()
        order = sorted_indices(row)[:k]
        indices[at] = order
        values[at] = [x[at][index] for index in order]
    return values, indices


def sort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in the order of ``arg_sort``."""
    order = arg_sort(x, axis=axis, descending=descending, stable=stable)
    return np.take_along_axis(x, order, axis)


def arg_sort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Smallest or largest first, the lowest index among equals, NaN as the largest."""
    del stable  # the order is stable in any case
    rows = np.moveaxis(x, axis, -1)
    indices = np.empty(rows.shape, dtype=np.int32)
    for at in np.ndindex(rows.shape[:-1]):
        row = rows[at].tolist()
        indices[at] = sorted_indices(row) if descending else _ascending(row)
    return np.moveaxis(indices, -1, axis)


def _ascending(row: list[Any]) -> list[int]:
    def undefined(at: int) -> bool:
        return isinstance(row[at], float) and isnan(row[at])

    there = [at for at in range(len(row)) if not undefined(at)]
    return sorted(there, key=row.__getitem__) + [at for at in range(len(row)) if undefined(at)]


def sorted_indices(row: list[Any]) -> list[int]:
    """Return the indices of ``row``, largest first; Python's sort keeps the order of equals."""
    missing = [at for at, value in enumerate(row) if isinstance(value, float) and isnan(value)]
    gone = set(missing)
    there = [at for at in range(len(row)) if at not in gone]
    return missing + sorted(there, key=lambda at: row[at], reverse=True)
