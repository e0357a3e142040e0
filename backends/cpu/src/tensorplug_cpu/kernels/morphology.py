"""Dilation: one vectorised step for each tap, over the positions at which it is on the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.ops import morphology as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.arrays import working
from tensorplug_cpu.quiet import quietly
from tensorplug_cpu.sliding import inside
from tensorplug_cpu.summation import summer

if TYPE_CHECKING:
    from tensorplug.dtypes import DType
    from tensorplug.spec import TensorType
    from tensorplug.windows import Windows
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()

Attributes = dict[str, Any]


def _lowest(dtype: DType) -> Any:
    """Return what never wins against an element."""
    return -np.inf if dtype in dt.FLOATING else np.iinfo(dtype.name).min


@kernels.prepare(ops.DILATION2D)
def dilation2d(
    x: TensorType, filter: TensorType, *, attributes: Attributes, out: TensorType
) -> Call:
    """Take the maximum over the taps."""
    at = ops.windows_of(x.shape, filter.shape, attributes)
    lowest = _lowest(x.dtype)
    steps = list(inside(at))

    def run(x: Array, filter: Array) -> Array:
        result = np.full(out.shape, lowest, x.dtype)
        for tap, positions, elements in steps:
            part = result[positions]
            np.maximum(part, x[elements] + filter[tap], out=part)
        return result

    return quietly(run)


def _winners(x: Array, filter: Array, at: Windows) -> Array:
    """Return which tap is the first largest of its window, a NaN before all; -1: none is."""
    shape = (len(x), *(each.out for each in at), x.shape[3])
    best, winner = np.full(shape, -np.inf, x.dtype), np.full(shape, -1, np.intp)
    for number, (tap, positions, elements) in enumerate(inside(at)):
        candidate, top, chosen = x[elements] + filter[tap], best[positions], winner[positions]
        # NaN compares as false: a candidate that is NaN is not below, and a best one stays.
        wins = ~(candidate <= top) & ~np.isnan(top)
        wins |= chosen < 0
        np.copyto(top, candidate, where=wins)
        np.copyto(chosen, number, where=wins)
    return winner


@kernels.prepare(ops.DILATION2D_BACKPROP_INPUT)
def backprop_input(
    x: TensorType, filter: TensorType, dy: TensorType, *, attributes: Attributes
) -> Call:
    """Give dy to the element under the winning tap; float16 adds in float32."""
    at = ops.windows_of(x.shape, filter.shape, attributes)
    work, narrow = working(x.dtype), x.dtype.numpy
    steps = list(inside(at))

    def run(x: Array, filter: Array, dy: Array) -> Array:
        winner = _winners(x, filter, at)
        result = np.zeros(x.shape, work)
        for number, (_, positions, elements) in enumerate(steps):
            part = result[elements]
            np.add(part, dy[positions], out=part, where=winner[positions] == number)
        return result.astype(narrow, copy=False)

    return quietly(run)


@kernels.prepare(ops.DILATION2D_BACKPROP_FILTER)
def backprop_filter(
    x: TensorType, filter: TensorType, dy: TensorType, *, attributes: Attributes
) -> Call:
    """Give dy to the winning tap; float16 adds in float32."""
    at = ops.windows_of(x.shape, filter.shape, attributes)
    work, narrow = working(x.dtype), x.dtype.numpy
    count = filter.shape[0] * filter.shape[1]
    total = summer(dy.shape, (0, 1, 2), work, keep_dims=False)

    def run(x: Array, filter: Array, dy: Array) -> Array:
        winner, wide = _winners(x, filter, at), dy.astype(work, copy=False)
        zero = work.type(0)
        rows = [total(np.where(winner == tap, wide, zero)) for tap in range(count)]
        return np.stack(rows).reshape(filter.shape).astype(narrow, copy=False)

    return quietly(run)
