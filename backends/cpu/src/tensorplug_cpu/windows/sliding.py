"""Sliding windows over NHWC arrays as NumPy views: padding, taps, columns.

Between batch and channels there may be any number of spatial axes, one window for each.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import channel_axis
from tensorplug_cpu.memory.pool import pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.plugin import Shape, Window, Windows
    from tensorplug_cpu.arrays import Array


_RECYCLED: Final = 1 << 18  # bytes

Block = tuple[slice, ...]  # of batch and spatial axes
Step = tuple[tuple[int, ...], Block, Block]  # a tap, positions, elements


def layout(data_format: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the permutation that takes ``data_format`` to channels last, and the one back."""
    rank, axis = len(data_format), channel_axis(data_format)
    last = (*(at for at in range(rank) if at != axis), axis)
    return last, (*range(axis), rank - 1, *range(axis, rank - 1))


def extent(window: Window) -> int:
    """Return the length of an axis with its padding."""
    return window.before + window.size + window.after


def padded(x: Array, at: Windows, value: Array | float) -> Array:
    """Return ``x`` (NHWC) with its padding, contiguous; itself if it is that already."""
    if not any(window.before or window.after for window in at):
        return np.ascontiguousarray(x)
    result = room((x.shape[0], *map(extent, at), x.shape[-1]), x.dtype)
    for axis, window in enumerate(at, start=1):
        around = (slice(None),) * axis
        result[*around, : window.before] = value
        result[*around, window.before + window.size :] = value
    unpadded(result, at)[...] = x
    return result


def room(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Return an array of arbitrary numbers, from a few pages on over recycled memory.

    Results take milliseconds to compute, so a lease is cheap; the page faults of new memory
    would take as long as the copies into it.
    """
    if prod(shape) * dtype.itemsize < _RECYCLED:
        return np.empty(shape, dtype)
    return pool.empty(shape, dtype)


def unpadded(x: Array, at: Windows) -> Array:
    """Return the view of a padded array that leaves its padding out."""
    return x[(slice(None), *(slice(window.before, window.before + window.size) for window in at))]


def _positions(window: Window, tap: int) -> slice:
    first = tap * window.dilation
    last = first + (window.out - 1) * window.stride
    return slice(first, last + 1 if window.out else first, window.stride)


def taps(at: Windows) -> Iterator[Block]:
    """Yield, in row-major order of the taps, the index of the elements each tap reads."""
    for tap in product(*(range(window.filter) for window in at)):
        yield slice(None), *map(_positions, at, tap)


def columns(x: Array, at: Windows) -> Array:
    """Return every window of a contiguous padded array, as a view.

    Its axes: batch, positions of the window, taps of the window, channel.
    """
    over_batch, *over_axes, over_channels = x.strides
    shape = (
        x.shape[0],
        *(window.out for window in at),
        *(window.filter for window in at),
        x.shape[-1],
    )
    strides = (
        over_batch,
        *(step * window.stride for step, window in zip(over_axes, at, strict=True)),
        *(step * window.dilation for step, window in zip(over_axes, at, strict=True)),
        over_channels,
    )
    return np.ndarray(shape, x.dtype, x, 0, strides)


def inside(at: Windows) -> Iterator[Step]:
    """Yield each tap, the positions at which it lies on the image, and the elements it reads."""
    for tap in product(*(range(window.filter) for window in at)):
        overlaps = [_on_image(window, number) for window, number in zip(at, tap, strict=True)]
        yield (
            tap,
            (slice(None), *(positions for positions, _ in overlaps)),
            (slice(None), *(elements for _, elements in overlaps)),
        )


def _on_image(window: Window, tap: int) -> tuple[slice, slice]:
    shift = tap * window.dilation - window.before  # from a position's start to the element
    first = max(0, -(shift // window.stride))
    last = min(window.out - 1, (window.size - 1 - shift) // window.stride)
    count = last - first + 1
    if count <= 0:
        return slice(0, 0), slice(0, 0)
    begin = first * window.stride + shift
    return (
        slice(first, last + 1),
        slice(begin, begin + (count - 1) * window.stride + 1, window.stride),
    )
