"""Layer normalization and its gradient, some rows at a time."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import output_allocator
from tensorplug_cpu.execution.rowwise import RowSums, by_blocks
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


class _Rows:
    """Arrays of one type as matrices with an example in each row, and back."""

    def __init__(self, out: TensorType, axis: tuple[int, ...]) -> None:
        kept = tuple(index for index in range(out.rank) if index not in axis)
        order = (*kept, *axis)
        self._axes = len(axis)
        self._order = None if order == tuple(range(out.rank)) else order
        self._arranged = tuple(out.shape[number] for number in order)
        self._back = tuple(map(int, np.argsort(order)))
        self.length = prod(out.shape[number] for number in axis)
        self.count = out.size // self.length

    def of(self, x: Array) -> Array:
        if self._order is not None:
            x = x.transpose(self._order)
        return x.reshape(self.count, self.length)

    def back(self, rows: Array) -> Array:
        result = rows.reshape(self._arranged)
        return result if self._order is None else result.transpose(self._back)

    def are_alike_in(self, x: TensorType | None) -> bool:
        """Return whether all rows of ``x`` are equal, once it is broadcast."""
        if x is None or x.size == 1:
            return True
        own = x.shape[max(0, x.rank - self._axes) :] if self._axes else ()
        return self._order is None and prod(own) == x.size == self.length


def _centred(rows: Array, epsilon: Any, room: Array, along: RowSums) -> Array:
    """Write the rows minus their means into ``room``; return the reciprocals of the deviations."""
    np.subtract(rows, along.means(rows), out=room)
    variance = along.means(room, room)
    variance += epsilon
    np.sqrt(variance, out=variance)
    return np.asarray(np.divide(1, variance, out=variance))


@kernels.prepare(specs.LAYER_NORM, because="faster")
def layer_norm(
    x: TensorType,
    scale: TensorType | None,
    offset: TensorType | None,
    *,
    axis: tuple[int, ...],
    epsilon: float,
    out: TensorType,
) -> Call:
    """Normalize block by block, and scale and shift there if all rows share the factors."""
    if not out.size:
        return lambda x, _scale, _offset: x
    rows = _Rows(out, axis)
    if rows.are_alike_in(scale) and rows.are_alike_in(offset):
        return without_warnings(_affine(rows, epsilon, out))
    dtype, narrow = working(out.dtype), out.dtype.numpy
    normalize = _affine(rows, epsilon, TensorType(dt.of(dtype), out.shape))

    def run(x: Array, scale: Array | None, offset: Array | None) -> Array:
        result = normalize(x.astype(dtype, copy=False), None, None)
        for function, factor in ((np.multiply, scale), (np.add, offset)):
            if factor is not None:
                result = function(result, factor, dtype=dtype)
        return np.asarray(result, narrow)

    return without_warnings(run)


def _affine(rows: _Rows, epsilon: float, out: TensorType) -> Call:
    """Return a function that normalizes, scales and shifts rows."""
    dtype, narrow = working(out.dtype), out.dtype.numpy
    small, allocate, along = (
        dtype.type(epsilon),
        output_allocator(out),
        RowSums(rows.length, dtype),
    )

    def run(x: Array, scale: Array | None, offset: Array | None) -> Array:
        result, matrix = allocate().reshape(rows.count, rows.length), rows.of(x)
        factors = [None if factor is None else factor.reshape(1, -1) for factor in (scale, offset)]

        def work(block: slice) -> None:
            target = result[block]
            room = target if dtype == narrow else np.empty(target.shape, dtype)
            wide = matrix[block].astype(dtype, copy=False)
            room *= _centred(wide, small, room, along)
            for function, factor in zip((np.multiply, np.add), factors, strict=True):
                if factor is not None:
                    function(room, factor, out=room)
            if room is not target:
                target[...] = room

        by_blocks(work, rows.count, rows.length)
        return rows.back(result)

    return run


@kernels.prepare(specs.LAYER_NORM_GRAD, because="faster")
def layer_norm_grad(
    dy: TensorType, x: TensorType, *, axis: tuple[int, ...], epsilon: float, out: TensorType
) -> Call:
    """Subtract from dy its mean and its projection onto the normalized row."""
    dtype, narrow = working(out.dtype), out.dtype.numpy
    if not out.size:
        return lambda dy, _x: dy
    rows, small, allocate = _Rows(out, axis), dtype.type(epsilon), output_allocator(out)
    along = RowSums(rows.length, dtype)

    def run(dy: Array, x: Array) -> Array:
        result, cotangents, matrix = (
            allocate().reshape(rows.count, rows.length),
            rows.of(dy),
            rows.of(x),
        )

        def work(block: slice) -> None:
            target = result[block]
            room = target if dtype == narrow else np.empty(target.shape, dtype)
            wide, centred = (
                cotangents[block].astype(dtype, copy=False),
                np.empty(target.shape, dtype),
            )
            reciprocal = _centred(matrix[block].astype(dtype, copy=False), small, centred, along)
            shared = along.means(wide, centred)
            shared *= reciprocal
            shared *= reciprocal
            centred *= shared
            np.subtract(wide, along.means(wide), out=room)
            room -= centred
            room *= reciprocal
            if room is not target:
                target[...] = room

        by_blocks(work, rows.count, rows.length)
        return rows.back(result)

    return without_warnings(run)
