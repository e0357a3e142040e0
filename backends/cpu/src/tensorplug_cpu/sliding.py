"""Sliding windows over NHWC arrays as NumPy views: padding, taps, columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.windows import Window
    from tensorplug_cpu.arrays import Array

__all__ = ["Windows", "columns", "extent", "padded", "taps", "unpadded"]

Windows = tuple["Window", "Window"]  # of height and of width
Block = tuple[slice, slice, slice]


def extent(window: Window) -> int:
    """Return the length of an axis with its padding."""
    return window.before + window.size + window.after


def padded(x: Array, at: Windows, value: Array | float) -> Array:
    """Return ``x`` (NHWC) with its padding, contiguous; itself if it is that already."""
    height, width = at
    if not (height.before or height.after or width.before or width.after):
        return np.ascontiguousarray(x)
    batch, _, _, channels = x.shape
    shape = (batch, extent(height), extent(width), channels)
    # A value of 0, by far the commonest, costs nothing where the system hands out zeros.
    result = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    unpadded(result, at)[...] = x
    return result


def unpadded(x: Array, at: Windows) -> Array:
    """Return the view of a padded array that leaves its padding out."""
    height, width = at
    return x[
        :,
        height.before : height.before + height.size,
        width.before : width.before + width.size,
    ]


def _positions(window: Window, tap: int) -> slice:
    first = tap * window.dilation
    last = first + (window.out - 1) * window.stride
    return slice(first, last + 1 if window.out else first, window.stride)


def taps(at: Windows) -> Iterator[Block]:
    """Yield, in row-major order of the taps, the index of the elements each tap reads."""
    height, width = at
    for row in range(height.filter):
        for column in range(width.filter):
            yield slice(None), _positions(height, row), _positions(width, column)


def columns(x: Array, at: Windows) -> Array:
    """Return every window of a contiguous padded array, as a view.

    Its axes: batch, row and column of the window, row and column of the tap, channel.
    """
    height, width = at
    over_batch, over_rows, over_columns, over_channels = x.strides
    shape = (x.shape[0], height.out, width.out, height.filter, width.filter, x.shape[3])
    strides = (
        over_batch,
        over_rows * height.stride,
        over_columns * width.stride,
        over_rows * height.dilation,
        over_columns * width.dilation,
        over_channels,
    )
    return np.ndarray(shape, x.dtype, x, 0, strides)
