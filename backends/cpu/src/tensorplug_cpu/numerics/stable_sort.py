"""Stable sorts along the last axis, by NumPy's vectorised sorts, which are not stable.

An element of 32 bits and its index fit into one integer of 64 bits. Sorted, these integers give
the indices in stable order, several times as fast as NumPy's stable argsort. For elements of 64
bits, an unstable order comes first; then the indices of equal elements are sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array


_SHORT = 32  # elements of a row up to which insertion sort, which is stable, is the fastest
_RADIX = 64  # elements of a row, of 16 bits or less, from which a radix sort is
_FEW = 2048  # elements up to which one call of NumPy's stable sort beats several of others
_LONG = 512  # elements of a row of 64 bits from which to put equals in order afterwards
_MANY = 1 << 14  # and elements in all
_SHARED = 1 << 16  # elements from which threads share the rows
_WIDE = 64  # rows up to which looking for zeros in sorted ones beats comparing all elements
_ROTATED = np.int32(0x7FFFFFFF)


def by_rows(function: Callable[[Array], Array], x: Array, dtype: np.dtype[Any]) -> Array:
    """Return ``function(x)``, of this dtype, some rows at a time in several threads.

    ``function``: from rows to as many rows, of any length.
    """
    if x.size < _SHARED or x.ndim < 2 or x.shape[-1] == x.size or dtype.kind == "T":
        return function(x)
    rows = x.reshape(-1, x.shape[-1])
    parts: dict[int, Array] = {}

    def work(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            parts[start] = function(rows[start:stop])

    parallel.in_parts(work, len(rows))
    width = parts[0].shape[-1]
    result = empty((len(rows), width), dtype)
    for start, part in parts.items():
        result[start : start + len(part)] = part
    return result.reshape(*x.shape[:-1], width)


def sorted_values(x: Array, *, descending: bool, stable: bool) -> Array:
    """Return the rows of ``x`` sorted, NaN as the largest."""
    return by_rows(lambda rows: _sorted(rows, descending=descending, stable=stable), x, x.dtype)


def _sorted(x: Array, *, descending: bool, stable: bool) -> Array:
    if x.dtype == np.float16 and x.size > _FEW:
        wide = _sorted(x.astype(np.float32), descending=descending, stable=stable)
        return wide.astype(np.float16)
    exact = stable and x.dtype.kind == "f"  # equal integers cannot be told apart
    if exact and x.size <= _FEW:
        if descending:  # of the reversed axis, read from its end: equals keep their order
            return np.sort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        return np.sort(x, axis=-1, kind="stable")
    radix = x.dtype.itemsize <= 2 and x.shape[-1] >= _RADIX
    result = empty(x.shape, x.dtype)
    np.copyto(result, x)
    result.sort(axis=-1, kind="stable" if radix else None)
    zeros = exact and _may_have_zeros(result)
    if descending:
        result = result[..., ::-1]
    if zeros:
        _zeros_in_order(x, result)
    return result


def _may_have_zeros(x: Array) -> bool:
    """Return whether a row of sorted ``x`` may have several zeros."""
    rows = x.reshape(-1, x.shape[-1])
    if len(rows) > _WIDE:
        return True
    zero = x.dtype.type(0)  # of Python's, NumPy would make float64 of the row
    starts, stops = (
        [np.searchsorted(row, zero, side) for row in rows] for side in ("left", "right")
    )
    return any(stop - start > 1 for start, stop in zip(starts, stops, strict=True))


def _zeros_in_order(x: Array, result: Array) -> None:
    """Give the zeros of each row of ``result`` the signs that they have in ``x``, in order.

    Zeros are the only equal numbers that differ. Every row has as many as before.
    """
    zeros = x == 0
    signs = x[zeros]
    if np.signbit(signs).any():
        result[result == 0] = signs


def arg_sorted(x: Array, *, descending: bool, stable: bool = True) -> Array:
    """Return the indices (int32) that sort the rows of ``x``; NaN is the largest."""
    return by_rows(
        lambda rows: _order(rows, descending=descending, stable=stable), x, np.dtype(np.int32)
    ).astype(np.int32, copy=False)


def _order(x: Array, *, descending: bool, stable: bool) -> Array:
    if x.dtype == np.float16 and x.size > _FEW:
        x = x.astype(np.float32)
    if x.dtype.itemsize == 4 and x.shape[-1] > _SHORT and x.size > _FEW:
        return _by_packing(x, descending=descending)
    if not descending:
        return _ascending(x, stable=stable)
    # The reversed axis in ascending order, read from its end, has the lowest index of equals
    # first again, and needs no negation.
    order = _ascending(x[..., ::-1], stable=stable)[..., ::-1]
    indices: Array = np.subtract(x.shape[-1] - 1, order)
    return indices


def _by_packing(x: Array, *, descending: bool) -> Array:
    key = _key(x)
    packed = empty(x.shape, np.dtype(np.int64))
    np.left_shift(~key if descending else key, 32, out=packed, dtype=np.int64)
    packed |= np.arange(x.shape[-1], dtype=np.int64)
    packed.sort(axis=-1)
    return packed.astype(np.int32)  # the lower half


def _key(x: Array) -> Array:
    """Return int32 in the order of ``x``, equal where elements are equal."""
    if x.dtype == np.int32:
        return x
    if x.dtype == np.uint32:
        return (x ^ np.uint32(1 << 31)).view(np.int32)
    bits = (x + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
    key: Array = bits ^ ((bits >> 31) & _ROTATED)  # negative floats count backwards
    undefined = np.isnan(x)
    if undefined.any():
        key[undefined] = np.iinfo(np.int32).max
    return key


def _ascending(x: Array, *, stable: bool) -> Array:
    if x.dtype.itemsize < 8 or x.shape[-1] < _LONG or x.size < _MANY:
        return np.argsort(x, axis=-1, kind="stable")
    order = np.argsort(x, axis=-1)
    return _equals_in_order(x, order) if stable else order


def _equals_in_order(x: Array, order: Array) -> Array:
    """Return ``order`` with the indices of equal elements in ascending order."""
    values = np.take_along_axis(x, order, axis=-1)
    fresh = values[..., 1:] != values[..., :-1]
    if x.dtype.kind == "f":
        fresh &= ~np.isnan(values[..., :-1])  # all NaN are adjacent, at the end
    if fresh.all():
        return order
    packed: np.ndarray[Any, np.dtype[np.int64]] = np.zeros(x.shape, np.int64)
    np.cumsum(fresh, axis=-1, out=packed[..., 1:])
    packed <<= 32
    packed |= order
    packed.sort(axis=-1)
    return packed.astype(np.int32)
