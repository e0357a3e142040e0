"""Repeating and reordering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.REPEAT, because="faster")
def repeat(x: TensorType, *, repeats: int, axis: int) -> Call:
    """Repeat each element."""
    return without_warnings(lambda x: x.repeat(repeats, axis))


@kernels.prepare(specs.REVERSE, because="faster")
def reverse(x: TensorType, *, dims: tuple[int, ...]) -> Call:
    """View with negative strides."""
    back, ahead = slice(None, None, -1), slice(None)
    key: Any = (..., *(back if axis in dims else ahead for axis in range(x.rank)))
    return lambda x: x[key]


@kernels.prepare(specs.MIRROR_PAD, because="faster")
def mirror_pad(
    x: TensorType, *, paddings: tuple[tuple[int, int], ...], mode: str, out: TensorType
) -> Call:
    """Write the elements into the middle, then mirror them axis by axis."""
    skip = 1 if mode == "reflect" else 0
    inside = zip(paddings, x.shape, strict=True)
    middle: Any = (..., *(slice(before, before + length) for (before, _), length in inside))
    moves = [
        move
        for axis, (pair, size) in enumerate(zip(paddings, x.shape, strict=True))
        for move in _mirrored(axis, pair, size, skip)
    ]
    shape, dtype = out.shape, out.dtype.numpy

    def run(x: Array) -> Array:
        result = np.empty(shape, dtype)
        result[middle] = x
        for to, source in moves:
            result[to] = result[source]
        return result

    return without_warnings(run)


def _mirrored(axis: int, pair: tuple[int, int], size: int, skip: int) -> list[tuple[Any, Any]]:
    """Return the targets and sources of the copies on both sides of an axis."""
    before, after = pair
    lead = (slice(None),) * axis
    end = before + size  # of the elements
    moves: list[tuple[Any, Any]] = []
    if before:
        first = before + skip
        moves.append(
            ((*lead, slice(0, before)), (*lead, slice(first + before - 1, first - 1, -1)))
        )
    if after:
        last = end - skip - 1
        stop = last - after
        source = slice(last, None if stop < 0 else stop, -1)
        moves.append(((*lead, slice(end, end + after)), (*lead, source)))
    return moves
