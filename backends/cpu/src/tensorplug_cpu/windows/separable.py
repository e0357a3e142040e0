"""Windows taken one axis after the other: spreading their values over their elements.

Arrays are [batch, spatial axes, channels]. Padding is never made: each tap of a window is a pair
of slices, of the positions at which it lies on elements and of those elements. This takes as many
steps as the window is wide and high together, not multiplied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_cpu.windows.sliding import room

if TYPE_CHECKING:
    from tensorplug.plugin import Window, Windows
    from tensorplug_cpu.arrays import Array


Tap = tuple[slice, slice]  # positions, and the elements that the tap sees there

_FEW_CHANNELS = 16


def tap_slices(window: Window) -> list[Tap]:
    """Return each tap of one axis."""
    taps = []
    for tap in range(window.filter):
        shift = tap * window.dilation - window.before
        low = max(0, -(shift // window.stride))
        high = min(window.out, (window.size - 1 - shift) // window.stride + 1)
        if high <= low:
            taps.append((slice(0), slice(0)))
            continue
        start = low * window.stride + shift
        stop = (high - 1) * window.stride + shift + 1
        taps.append((slice(low, high), slice(start, stop, window.stride)))
    return taps


def overlap(window: Window) -> bool:
    """Return whether an element can be in two windows of this axis."""
    return window.stride < (window.filter - 1) * window.dilation + 1


def covered(windows: Windows) -> bool:
    """Return whether windows tile the whole image."""
    return all(
        window.dilation == 1
        and window.stride == window.filter
        and not window.before
        and window.out * window.stride == window.size
        for window in windows
    )


def counts(window: Window) -> Array:
    """Return for each position how many taps lie on elements."""
    result = np.zeros(window.out, np.float64)
    for positions, _ in tap_slices(window):
        result[positions] += 1
    return result


def few(channels: int) -> bool:
    """Return whether NumPy would spend its time on starting rows of so many channels."""
    return 1 < channels < _FEW_CHANNELS


def images(x: Array, channels_axis: int) -> Array:
    """Return each channel of each image as an image of its own, with one channel."""
    first = np.ascontiguousarray(np.moveaxis(x, channels_axis, 1))
    return first.reshape(first.shape[0] * first.shape[1], *first.shape[2:], 1)


def joined(x: Array, channels: int, channels_axis: int) -> Array:
    """Undo ``images``."""
    first = x.reshape(x.shape[0] // channels, channels, *x.shape[1:-1])
    return np.ascontiguousarray(np.moveaxis(first, 1, channels_axis))


def spread(x: Array, windows: Windows) -> Array:
    """Return for each element the sum of ``x`` over the windows that it is in."""
    result = x
    for axis, window in reversed(list(enumerate(windows, start=1))):
        if window.filter == window.stride == 1 and window.out == window.size:
            continue
        before = (slice(None),) * axis
        shape = (*result.shape[:axis], window.size, *result.shape[axis + 1 :])
        wide = room(shape, result.dtype)
        wide.fill(0)
        adding = overlap(window)
        for positions, elements in tap_slices(window):
            if adding:
                wide[*before, elements] += result[*before, positions]
            else:
                wide[*before, elements] = result[*before, positions]
        result = wide
    return result.copy() if result is x else result
