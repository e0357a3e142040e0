"""Sums by segment, and counts of integers."""

from __future__ import annotations

from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.forms import by_form
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.segments import row_sums

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.UNSORTED_SEGMENT_SUM, because="faster")
def unsorted_segment_sum(
    x: TensorType, segment_ids: TensorType, *, num_segments: int, out: TensorType
) -> Call:
    """Add up rows by their id; drop those whose id is out of range."""
    count, width = segment_ids.size, prod(out.shape[1:])
    shape = out.shape

    def run(x: Array, segment_ids: Array) -> Array:
        ids, rows = segment_ids.reshape(count), x.reshape(count, width)
        if count and (ids.min() < 0 or ids.max() >= num_segments):
            kept = np.flatnonzero((ids >= 0) & (ids < num_segments))
            ids, rows = ids.take(kept), rows.take(kept, axis=0)
        return row_sums(ids.astype(np.intp, copy=False), rows, num_segments).reshape(shape)

    return without_warnings(run)


def _without_negative(prepare: Call) -> Call:
    """Return what prepares a kernel that raises ``ArgumentError`` where an integer is negative."""

    @wraps(prepare)  # whose parameters the table reads
    def prepare_checked(x: TensorType, weights: TensorType | None, **asked: Any) -> Call:
        count: Call = prepare(x, weights, **asked)
        if not x.size or x.dtype not in dt.SIGNED:
            return count

        def run(x: Array, weights: Array | None) -> Array:
            low = int(x.min())
            if low < 0:
                raise ArgumentError(f"x holds {low}, but integers to count must not be negative")
            result: Array = count(x, weights)
            return result

        return run

    return prepare_checked


def _within(x: Array, size: int) -> tuple[Array, Array | None]:
    """Return the integers below ``size``, flat, and which they are (None: all of them)."""
    flat = x.reshape(-1)
    kept = np.flatnonzero(flat < size) if flat.size and flat.max() >= size else None
    if kept is not None:
        flat = flat.take(kept)
    return flat.astype(np.intp, copy=False), kept


@kernels.prepare(specs.BINCOUNT, because="faster")
@_without_negative
@by_form(specs.BINCOUNT)
def bincount(x: TensorType, weights: TensorType | None, *, size: int, out: TensorType) -> Call:
    """Count, or add up weights."""
    return without_warnings(_counter(x, weights, 1, size, out))


@kernels.prepare(specs.DENSE_BINCOUNT, because="faster")
@_without_negative
@by_form(specs.DENSE_BINCOUNT)
def dense_bincount(
    x: TensorType,
    weights: TensorType | None,
    *,
    size: int,
    binary_output: bool,
    out: TensorType,
) -> Call:
    """Count, or add up weights, row by row; the bins of all rows are one vector."""
    rows = prod(x.shape[:-1])
    if not binary_output:
        return without_warnings(_counter(x, weights, rows, size, out))
    dtype, shape = out.dtype.numpy, out.shape
    count = _counter(x, None, rows, size, out)
    return without_warnings(lambda x, _weights: (count(x, None) > 0).astype(dtype).reshape(shape))


def _counter(
    x: TensorType, weights: TensorType | None, rows: int, size: int, out: TensorType
) -> Call:
    """Return the function that counts in ``rows`` rows of ``size`` bins."""
    weighted = weights is not None and weights.size > 0
    dtype, shape, total = out.dtype.numpy, out.shape, rows * size
    starts = np.repeat(np.arange(rows, dtype=np.intp) * size, x.size // rows if rows else 0)

    def run(x: Array, weights: Array | None) -> Array:
        bins, kept = _within(x, size)
        if rows > 1:
            bins = bins + (starts if kept is None else starts.take(kept))
        if not weighted or weights is None:
            return np.bincount(bins, minlength=total)[:total].astype(dtype).reshape(shape)
        values = weights.reshape(-1)
        if kept is not None:
            values = values.take(kept)
        return row_sums(bins, values.reshape(-1, 1), total).reshape(shape)

    return run
