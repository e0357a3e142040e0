"""Sliding windows over NHWC arrays as NumPy views: padding, and one block for each tap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.windows import Window
    from tensorplug_cpu.arrays import Array

__all__ = ["Windows", "padded", "taps", "unpadded"]

Windows = tuple["Window", "Window"]  # of height and of width
Block = tuple[slice, slice, slice]


def padded(x: Array, at: Windows, value: Array | float) -> Array:
    """Return ``x`` with its padding: itself where there is none."""
    height, width = at
    if not (height.before or height.after or width.before or width.after):
        return x
    batch, _, _, channels = x.shape
    rows = height.before + height.size + height.after
    columns = width.before + width.size + width.after
    result = np.full((batch, rows, columns, channels), value, x.dtype)
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
