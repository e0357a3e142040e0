"""Windows taken one axis after the other: reducing over them, and spreading back.

Arrays are [batch, spatial axes, channels]. Padding is never made: each tap of a window is a pair
of slices, of the positions at which it lies on elements and of those elements. A maximum or a
sum over a window is one along the first axis, of the results along the second, and so on, which
takes as many steps as the window is wide and high together, not multiplied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_cpu.windows.sliding import room

if TYPE_CHECKING:
    from tensorplug.plugin import Window, Windows
    from tensorplug_cpu.arrays import Array


Tap = tuple[slice, slice]  # positions, and the elements that the tap sees there

_FEW_CHANNELS = 16
_LONG = 8  # taps whose sum loses no more by being added in order than in pairs


def tap_slices(window: Window, first: int = 0, last: int | None = None) -> list[Tap]:
    """Return each tap of one axis, at the positions from ``first`` up to ``last``."""
    end = window.out if last is None else last
    taps = []
    for tap in range(window.filter):
        shift = tap * window.dilation - window.before
        low = max(first, -(shift // window.stride))
        high = min(end, (window.size - 1 - shift) // window.stride + 1)
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


def reduced(x: Array, windows: Windows, function: np.ufunc, identity: Any) -> Array:
    """Return ``function`` over every window; ``identity`` under those of nothing but padding."""
    result = x
    for axis, window in enumerate(windows, start=1):
        if window.filter == window.stride == 1 and window.out == window.size:
            continue
        result = _along(result, axis, window, tap_slices(window), function, identity)
    return result.copy() if result is x else result


def _along(
    x: Array, axis: int, window: Window, taps: list[Tap], function: np.ufunc, identity: Any
) -> Array:
    if len(taps) > _LONG and function is np.add:
        half = len(taps) // 2
        total = _along(x, axis, window, taps[:half], function, identity)
        total += _along(x, axis, window, taps[half:], function, identity)
        return total
    before = (slice(None),) * axis
    whole = [tap for tap in taps if tap[0] == slice(0, window.out)]
    rest = [tap for tap in taps if tap not in whole]
    result = room((*x.shape[:axis], window.out, *x.shape[axis + 1 :]), x.dtype)
    if len(whole) > 1:
        function(x[*before, whole[0][1]], x[*before, whole[1][1]], out=result)
    elif whole:
        result[...] = x[*before, whole[0][1]]
    else:
        result[...] = identity
    for positions, elements in (*whole[2:], *rest):
        part = result[*before, positions]
        function(part, x[*before, elements], out=part)
    return result


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
