"""Unique values in the order of their first occurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]

__all__ = ["unique", "unique_with"]


def unique(x: Array, *, axis: int) -> tuple[Array, Array]:
    """Return the unique slices along ``axis``, and for each slice its index among them."""
    return unique_with(lambda flat: np.argsort(flat, kind="stable"), x, axis)


def unique_with(order_of: Callable[[Array], Array], x: Array, axis: int) -> tuple[Array, Array]:
    """Do the same with a function that returns the stable order of an array of rank 1."""
    if x.ndim == 1:
        first, numbers = _number(x, order_of)
        return x[first], numbers
    slices = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1 if x.size else 0)
    first, numbers = _number_rows(slices, order_of)
    return np.take(x, first, axis=axis), numbers


def _number(x: Array, order_of: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return the first occurrences of the unique elements, ascending, and each element's index."""
    count = len(x)
    if not count:
        return np.zeros(0, np.intp), np.zeros(0, np.int32)
    order = order_of(x)
    ordered = x[order]
    fresh = np.empty(count, bool)
    fresh[0] = True
    fresh[1:] = ordered[1:] != ordered[:-1]
    if x.dtype.kind in "fc":
        undefined = np.isnan(ordered)
        fresh[1:] &= ~(undefined[1:] & undefined[:-1])
    first = order[fresh]  # the lowest index among equals, because the order is stable
    by_value = np.empty(count, np.int32)
    by_value[order] = np.cumsum(fresh, dtype=np.int32) - 1
    appearance = np.argsort(first)
    rank = np.empty(len(first), np.int32)
    rank[appearance] = np.arange(len(first), dtype=np.int32)
    return first[appearance], rank[by_value]


def _number_rows(x: Array, order_of: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Do the same for rows: number the elements, then compare rows of numbers as bytes."""
    count, length = x.shape
    if not count or not length:
        return np.arange(min(count, 1)), np.zeros(count, np.int32)
    _, numbers = _number(x.reshape(-1), order_of)
    rows = numbers.reshape(count, length)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * length)))
    return _number(keys.reshape(-1), lambda flat: np.argsort(flat, kind="stable"))
