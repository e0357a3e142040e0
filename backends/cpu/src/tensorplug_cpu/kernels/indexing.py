"""Reading and writing at indices."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.errors import ArgumentError
from tensorplug.ops import indexing as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.arrays import element
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.dtypes import Scalar
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


def _positions(indices: Array, length: int, axis: int) -> Array:
    """Return indices into an axis counted from the front.

    Raises:
        ArgumentError: naming the first one outside ``[-length, length)``.

    """
    if not indices.size:
        return indices.astype(np.intp)
    low, high = int(indices.min()), int(indices.max())
    if low < -length or high >= length:
        outside = (indices >= length) if high >= length else (indices < -length)
        raise ArgumentError(
            f"index {indices[outside].flat[0]} is out of range for axis {axis} of length {length}"
        )
    positions = indices.astype(np.intp, copy=False)
    return np.where(positions < 0, positions + length, positions) if low < 0 else positions


@kernels.prepare(ops.GATHER_V2)
def gather_v2(
    x: TensorType, indices: TensorType, *, axis: int, batch_dims: int, out: TensorType
) -> Call:
    """Take slices along an axis, with one set of indices for each batch."""
    length, shape = x.shape[axis], out.shape
    if not batch_dims:

        def run(x: Array, indices: Array) -> Array:
            flat = _positions(indices, length, axis).reshape(-1)
            return x.take(flat, axis=axis).reshape(shape)

        return quietly(run)

    batch, before = prod(x.shape[:batch_dims]), prod(x.shape[batch_dims:axis])
    after = prod(x.shape[axis + 1 :])
    count = prod(indices.shape[batch_dims:])
    starts = np.arange(batch * before, dtype=np.intp).reshape(batch, before, 1) * length

    def run_batched(x: Array, indices: Array) -> Array:
        positions = _positions(indices, length, axis).reshape(batch, 1, count)
        rows = x.reshape(batch * before * length, after)
        return rows.take(starts + positions, axis=0).reshape(shape)

    return quietly(run_batched)


def _added(flat: Array, values: Array, size: int) -> Array:
    """Return zeros of length ``size`` with ``values`` added at ``flat``; duplicates add up.

    Floats are added in float64, which ``bincount`` does anyway, and rounded once.
    """
    if values.dtype.kind == "c":
        real, imaginary = (np.bincount(flat, part, size) for part in (values.real, values.imag))
        return (real + 1j * imaginary).astype(values.dtype)
    if values.dtype.kind == "f":
        return np.bincount(flat, values, size).astype(values.dtype)
    result = np.zeros(size, values.dtype)
    np.add.at(result, flat, values)
    return result


@kernels.prepare(ops.SCATTER_ND)
def scatter_nd(indices: TensorType, updates: TensorType, *, shape: Shape, out: TensorType) -> Call:
    """Add slices at positions. A negative position counts from the end, as in GatherV2."""
    depth = indices.shape[-1]
    width = prod(shape[depth:])
    count = prod(indices.shape[:-1])
    within, size = np.arange(width, dtype=np.intp), out.size

    def run(indices: Array, updates: Array) -> Array:
        flat = np.zeros(indices.shape[:-1], np.intp)
        for axis in range(depth):
            flat = flat * shape[axis] + _positions(indices[..., axis], shape[axis], axis)
        flat = flat.reshape(count, 1) * width + within
        return _added(flat.reshape(-1), updates.reshape(-1), size).reshape(shape)

    return quietly(run)


@kernels.prepare(ops.ONE_HOT)
def one_hot(
    indices: TensorType, *, depth: int, on_value: Scalar, off_value: Scalar, out: TensorType
) -> Call:
    """Fill with ``off_value`` and write ``on_value`` where an index names a column."""
    on, off = element(on_value, out.dtype), element(off_value, out.dtype)
    shape, count = out.shape, indices.size

    def run(indices: Array) -> Any:
        result = np.full((count, depth), off, off.dtype)
        flat = indices.reshape(-1)
        rows = np.flatnonzero((flat >= 0) & (flat < depth))
        result[rows, flat[rows].astype(np.intp)] = on
        return result.reshape(shape)

    return quietly(run)
