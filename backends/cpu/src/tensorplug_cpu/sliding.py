"""Sliding windows over NHWC arrays as NumPy views: padding, taps, columns.

Between batch and channels there may be any number of spatial axes, one window for each.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.windows import Window, Windows
    from tensorplug_cpu.arrays import Array

__all__ = ["columns", "extent", "padded", "taps", "unpadded"]

Block = tuple[slice, ...]  # of batch and spatial axes


def extent(window: Window) -> int:
    """Return the length of an axis with its padding."""
    return window.before + window.size + window.after


def padded(x: Array, at: Windows, value: Array | float) -> Array:
    """Return ``x`` (NHWC) with its padding, contiguous; itself if it is that already."""
    if not any(each.before or each.after for each in at):
        return np.ascontiguousarray(x)
    shape = (x.shape[0], *map(extent, at), x.shape[-1])
    # A value of 0, by far the commonest, costs nothing where the system hands out zeros.
    result = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    unpadded(result, at)[...] = x
    return result


def unpadded(x: Array, at: Windows) -> Array:
    """Return the view of a padded array that leaves its padding out."""
    return x[(slice(None), *(slice(each.before, each.before + each.size) for each in at))]


def _positions(window: Window, tap: int) -> slice:
    first = tap * window.dilation
    last = first + (window.out - 1) * window.stride
    return slice(first, last + 1 if window.out else first, window.stride)


def taps(at: Windows) -> Iterator[Block]:
    """Yield, in row-major order of the taps, the index of the elements each tap reads."""
    for tap in product(*(range(each.filter) for each in at)):
        yield slice(None), *map(_positions, at, tap)


def columns(x: Array, at: Windows) -> Array:
    """Return every window of a contiguous padded array, as a view.

    Its axes: batch, positions of the window, taps of the window, channel.
    """
    over_batch, *over_axes, over_channels = x.strides
    shape = (
        x.shape[0],
        *(each.out for each in at),
        *(each.filter for each in at),
        x.shape[-1],
    )
    strides = (
        over_batch,
        *(step * each.stride for step, each in zip(over_axes, at, strict=True)),
        *(step * each.dilation for step, each in zip(over_axes, at, strict=True)),
        over_channels,
    )
    return np.ndarray(shape, x.dtype, x, 0, strides)
