"""Sorting: the largest entries, or all along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families import selection
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.numerics.stable_sort import arg_sorted, by_rows, sorted_values

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


_LONG = 256  # entries from which looking for the few largest is faster than sorting


def _top_indices(x: Array, k: int) -> Array:
    """Return the indices of the ``k`` largest entries of the last axis, in order."""
    return arg_sorted(x, descending=True)[..., :k]


def _selected(x: Array, k: int) -> Array:
    """Return the same as ``_top_indices`` for a long matrix, sorting only ``k`` of each row.

    A partition puts the k-th largest into its position.
    """
    length = x.shape[-1]
    last = np.partition(x, length - k, axis=-1)[:, length - k, None]
    chosen = x >= last
    if x.dtype.kind == "f":
        undefined = np.isnan(last)
        if undefined.any():
            chosen |= undefined
        chosen |= np.isnan(x)
    counts = np.count_nonzero(chosen, axis=-1)
    crowded = np.flatnonzero(counts > k)
    if crowded.size:
        chosen[crowded] = _without_last_equals(x[crowded], last[crowded], k)
    positions = np.flatnonzero(chosen).reshape(-1, k)
    values = x.reshape(-1).take(positions)
    positions -= np.arange(0, x.size, length)[:, None]
    return np.take_along_axis(positions, _top_indices(values, k), axis=-1)


def _without_last_equals(x: Array, last: Array, k: int) -> Array:
    """Return which entries are the ``k`` largest of rows with equals of the k-th, ``last``.

    As many of these as are missing belong to them, from the lowest index on.
    """
    above, equal = x > last, x == last
    if x.dtype.kind == "f":
        undefined = np.isnan(x)
        last_undefined = np.isnan(last)
        above |= undefined & ~last_undefined
        equal |= undefined & last_undefined
    missing = k - np.count_nonzero(above, axis=-1, keepdims=True)
    equal &= np.cumsum(equal, axis=-1, dtype=np.intp) <= missing
    chosen: Array = above | equal
    return chosen


@kernels.prepare(specs.TOP_K)
def top_k(x: TensorType, *, k: int, out: tuple[TensorType, TensorType]) -> Call:
    """Return values and indices of the largest entries; both orders of ``sorted`` are sorted."""
    length, shape = x.shape[-1], out[0].shape
    if not out[0].size:
        dtype = x.dtype.numpy
        return lambda _x: (np.empty(shape, dtype), np.empty(shape, np.int32))
    rows = x.size // length
    native = selection.largest((rows, length), x.dtype.numpy, k)
    if native is not None:

        def select(x: Array) -> tuple[Array, Array]:
            values, indices = native(x)
            return values.reshape(shape), indices.reshape(shape)

        return without_warnings(select)
    find = _selected if length >= _LONG and 4 * k <= length else _top_indices
    each_row = np.arange(rows)[:, None]

    def run(x: Array) -> tuple[Array, Array]:
        rows = x.reshape(-1, length)
        indices = by_rows(lambda part: find(part, k), rows, np.dtype(np.int32))
        values = rows[each_row, indices]
        return values.reshape(shape), indices.astype(np.int32, copy=False).reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.SORT, because="faster")
def sort(x: TensorType, *, axis: int, descending: bool, stable: bool) -> Call:
    """Sort along any axis by moving it to the end."""

    def run(x: Array) -> Array:
        moved = x.swapaxes(axis, -1)
        return sorted_values(moved, descending=descending, stable=stable).swapaxes(axis, -1)

    return without_warnings(run)


@kernels.prepare(specs.ARG_SORT, because="faster")
def arg_sort(x: TensorType, *, axis: int, descending: bool, stable: bool) -> Call:
    """Give the indices instead."""

    def run(x: Array) -> Array:
        moved = x.swapaxes(axis, -1)
        order = arg_sorted(moved, descending=descending, stable=stable)
        return order.swapaxes(axis, -1)

    return without_warnings(run)


@kernels.prepare(specs.ARG_PARTITION, because="faster")
def arg_partition(x: TensorType, *, axis: int, kth: tuple[int, ...]) -> Call:
    """Order only as much as the positions require."""

    def run(x: Array) -> Array:
        return np.argpartition(x, kth, axis).astype(np.int32, copy=False)

    return without_warnings(run)
