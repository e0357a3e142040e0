"""Windows that tile an image: they do not overlap, and there is no padding.

The value of a window is repeated for its elements along the last spatial axis, so that NumPy works
on whole rows of all windows at once. Tap by tap, its inner loop would cover a few channels only.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_cpu.windows.sliding import room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.plugin import Windows
    from tensorplug_cpu.arrays import Array

    Index = tuple[Any, ...]


_BLOCK = 1 << 19  # elements: two dozen calls of NumPy per block cost more than a cache saves


def tiled(windows: Windows) -> bool:
    """Return whether windows along several axes tile what they cover."""
    return len(windows) > 1 and all(
        window.out > 0
        and window.before == 0
        and window.stride == window.filter
        and window.dilation == 1
        and window.out * window.stride <= window.size
        for window in windows
    )


def covered(windows: Windows) -> bool:
    """Return whether windows tile the whole image."""
    return tiled(windows) and all(window.out * window.stride == window.size for window in windows)


def _shifts(row: Array, step: int, count: int) -> list[tuple[int, Array]]:
    """Return the distances to the other elements of a window, and which elements have them."""
    return [(turn * step, row >= turn * step) for turn in range(1, count)]


class Tiles:
    """Spreads values over the windows of arrays [batch, spatial axes, channels]."""

    def __init__(self, batch: int, windows: Windows, channels: int) -> None:
        *others, last = windows
        self._windows = windows
        self._channels = channels
        self._repeats = last.filter
        row = last.out * last.filter * channels
        inner = [(other.out, other.filter) for other in others[1:]]
        self._split = (-1, *(n for other in others for n in (other.out, other.filter)), row)
        self._whole = covered(windows)
        # Blocks: some images, or some windows along the first axis of one.
        across = prod(out * taps for out, taps in inner) * row * others[0].filter
        rows = max(1, min(_BLOCK // across, others[0].out))
        images = max(1, _BLOCK // (across * others[0].out))
        self._blocks = [
            (slice(image, image + images), slice(first, first + rows))
            for image in range(0, batch, images)
            for first in range(0, others[0].out, rows)
        ]
        self._taps = list(product(*(range(other.filter) for other in others)))
        # The position of each element of a row in its window.
        width = last.filter * channels
        size = min(images, batch) * rows * prod(out for out, _ in inner) * row
        position = np.arange(size) % width
        self._earlier = _shifts(position, channels, last.filter)
        self._later = _shifts(width - 1 - position, channels, last.filter)

    def _parted(self, x: Array) -> Array:
        """Return what windows cover, each axis but the last as windows and taps; rows whole."""
        covered = (slice(None), *(slice(window.out * window.stride) for window in self._windows))
        return x[covered].reshape(self._split)

    def _result(self, x_shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        result = room(x_shape, dtype)
        if not self._whole:
            result.fill(0)
        return result

    def _beside(self, x: Array) -> Array:
        """Return each number once for every element of its window along the last axis."""
        if self._repeats == 1:
            return x
        if self._channels > 1:
            return np.repeat(x, self._repeats, axis=-2)
        shape = (*x.shape[:-2], x.shape[-2] * self._repeats, 1)
        result = np.empty(shape, x.dtype)
        for start in range(self._repeats):
            result[..., start :: self._repeats, :] = x
        return result

    def spread(self, share: Array, shape: tuple[int, ...]) -> Array:
        """Return an array of ``shape`` with each window's share in all of its elements."""
        result = self._result(shape, share.dtype)
        target = self._parted(result)
        for images, rows in self._blocks:
            beside = self._beside(share[images, rows])
            for at in self._positions():
                part = target[images, rows, *at]
                part[...] = beside.reshape(part.shape)
        return result

    def _positions(self) -> Iterator[Index]:
        """Yield, for the taps of all axes but the last, the index after images and windows."""
        for first, *others in self._taps:
            yield (first, *(index for tap in others for index in (slice(None), tap)))

    def to_first_equal(self, dy: Array, x: Array, largest: Array) -> Array:
        """Return ``dy`` where the first element, in row-major order, has the window's ``largest``.

        A NaN is equal to a NaN.
        """
        # dy or 0.0, as a product of its bits: several times as fast as choosing by a random
        # mask, and infinities times 0 do not become NaN.
        bits = np.dtype(f"i{dy.itemsize}")
        result = self._result(x.shape, dy.dtype)
        source, target = self._parted(x), self._parted(result.view(bits))
        for images, rows in self._blocks:
            block = largest[images, rows]
            undefined = x.dtype.kind == "f" and bool(np.isnan(np.maximum.reduce(block, axis=None)))
            maxima, cotangents = self._beside(block), self._beside(dy[images, rows].view(bits))
            settled = None
            for number, at in enumerate(self._positions(), start=1):
                tap = source[images, rows, *at]
                equal = np.equal(tap, maxima.reshape(tap.shape))
                if undefined:
                    equal |= np.isnan(tap)
                equal = equal.reshape(-1)
                wins = self._first(equal, settled)
                if number < len(self._taps):
                    settled = self._settled(equal, settled)
                part = target[images, rows, *at]
                np.multiply(cotangents.reshape(tap.shape), wins.reshape(tap.shape), out=part)
        return result

    def _first(self, equal: Array, settled: Array | None) -> Array:
        """Return where an element is the first of its window that is equal.

        ``equal``: of one row of every window. ``settled``: which windows had one in earlier rows.
        """
        wins = equal.copy() if settled is None else np.greater(equal, settled)
        for shift, exists in self._earlier:
            own = wins[shift:]
            np.greater(own, equal[:-shift] & exists[shift : equal.size], out=own)
        return wins

    def _settled(self, equal: Array, settled: Array | None) -> Array:
        """Return beside every element whether its window has had an equal one by now."""
        result = equal.copy() if settled is None else equal | settled
        for shift, exists in self._earlier:
            own = result[shift:]
            np.logical_or(own, equal[:-shift] & exists[shift : equal.size], out=own)
        for shift, exists in self._later:
            own = result[:-shift]
            np.logical_or(own, equal[shift:] & exists[: equal.size - shift], out=own)
        return result
