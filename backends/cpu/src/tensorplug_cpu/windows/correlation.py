"""Convolution on NHWC arrays as matrix products (im2col), and its two transposes.

There may be any number of spatial axes; the letters below are those of two.

The windows are copied into a matrix with one row per position, a few images at a time, so that
the matrix stays in the cache. With few channels the copy runs faster into the transpose of that
matrix, where long runs of neighbouring positions lie together; BLAS takes either.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import Window, Windows
from tensorplug_cpu.execution.parallel import share_out
from tensorplug_cpu.windows.sliding import columns, extent, padded, room, taps, unpadded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_cpu.arrays import Array


_CHUNK = 1 << 18  # elements of the matrix of windows: about a second-level cache of float32
_LARGE = 1 << 20  # elements of one image's windows above which it is taken in parts
_SHARED = 1 << 17  # elements whose copy is shared out among threads
_SHORT_RUN = 16  # neighbouring elements below which copying row by row is the slower way


def _chunks(batch: int, elements: int) -> Iterator[slice]:
    """Yield slices of the batch with about ``_CHUNK`` elements; ``elements``: of one image."""
    step = max(1, _CHUNK // max(1, elements))
    for first in range(0, batch, step):
        yield slice(first, min(first + step, batch))


def _pieces(at: Windows, batch: int, length: int) -> Iterator[tuple[slice, slice]]:
    """Yield images, and rows of them: several images whole, or one of many windows in parts.

    ``length``: of a window.
    """
    rows = at[0].out
    row = prod(window.out for window in at[1:]) * length
    if rows * row <= _LARGE:
        for part in _chunks(batch, rows * row):
            yield part, slice(0, rows)
        return
    step = max(1, _CHUNK // row)
    for image in range(batch):
        for first in range(0, rows, step):
            yield slice(image, image + 1), slice(first, min(first + step, rows))


def _positions(at: Windows, images: slice, rows: slice) -> slice:
    """Return where the positions of a piece lie among those of all images."""
    inner, height = prod(window.out for window in at[1:]), at[0].out
    first = (images.start * height + rows.start) * inner
    return slice(first, first + (images.stop - images.start) * (rows.stop - rows.start) * inner)


class _Matrices:
    """Makes matrices [positions, taps * channels] of windows, all in the same buffer."""

    def __init__(self, windows: Array, at: Windows) -> None:
        self._windows = windows
        axes = len(at)
        self._length = prod(windows.shape[1 + axes :])
        self._copies = prod(window.filter for window in at) > 1
        runs = at[-1].filter * windows.shape[-1] >= _SHORT_RUN
        self._order = None if runs else (*range(1 + axes, windows.ndim), *range(1 + axes))
        self._room = np.empty(0, windows.dtype)

    def __call__(self, piece: tuple[slice, slice]) -> Array:
        """Return the matrix of some images, and rows of them; it lasts until the next."""
        windows = self._windows[piece]
        if not self._copies:
            return windows.reshape(-1, self._length)
        if self._room.size < windows.size:
            self._room = room((windows.size,), windows.dtype)
        target = self._room[: windows.size]
        if self._order is not None:
            windows = windows.transpose(self._order)
            np.copyto(target.reshape(windows.shape), windows)
            return target.reshape(self._length, -1).T
        _copy(target.reshape(windows.shape), windows)
        return target.reshape(-1, self._length)


def _copy(target: Array, windows: Array) -> None:
    """Copy large arrays in several threads: by images, or by rows of a single image."""
    if target.size < _SHARED:
        np.copyto(target, windows)
        return
    if len(target) == 1:
        target, windows = target[0], windows[0]

    def work(part: Array) -> None:
        chosen = slice(part[0], part[-1] + 1)
        np.copyto(target[chosen], windows[chosen])

    share_out(work, (), np.arange(len(target)))


def correlate(x: Array, filter: Array, at: Windows) -> Array:
    """Return the convolution of ``x`` [N,H,W,C] with ``filter`` [KH,KW,C,F]: [N,OH,OW,F]."""
    batch, filters = x.shape[0], filter.shape[-1]
    sizes = tuple(window.out for window in at)
    positions = prod(sizes)
    if not (filter.size and batch * positions):
        return np.zeros((batch, *sizes, filters), x.dtype)
    result = room((batch * positions, filters), x.dtype)
    matrix = _Matrices(columns(padded(x, at, 0), at), at)
    weights = filter.reshape(-1, filters)
    for piece in _pieces(at, batch, len(weights)):
        np.matmul(matrix(piece), weights, out=result[_positions(at, *piece)])
    return result.reshape(batch, *sizes, filters)


def correlate_filter(x: Array, dy: Array, at: Windows) -> Array:
    """Return the gradient of the filter, [KH,KW,C,F], from x [N,H,W,C] and dy [N,OH,OW,F]."""
    batch, channels, filters = x.shape[0], x.shape[-1], dy.shape[-1]
    positions = prod(window.out for window in at)
    taken = tuple(window.filter for window in at)
    length = prod(taken) * channels
    result = np.zeros((length, filters), x.dtype)
    if result.size and dy.size:
        matrix = _Matrices(columns(padded(x, at, 0), at), at)
        right = dy.reshape(batch * positions, filters)
        for piece in _pieces(at, batch, length):
            result += matrix(piece).T @ right[_positions(at, *piece)]
    return result.reshape(*taken, channels, filters)


def spread(dy: Array, filter: Array, at: Windows) -> Array:
    """Return the gradient of x, [N,H,W,C], from dy [N,OH,OW,F] and filter [KH,KW,C,F]."""
    channels, filters = filter.shape[-2:]
    mirror = mirrored(at)
    if mirror is not None and filters <= 4 * channels:
        flipped = filter[(slice(None, None, -1),) * len(at)]
        return correlate(dy, flipped.swapaxes(-1, -2), mirror)
    return _scattered(dy, filter, at)


def mirrored(at: Windows) -> Windows | None:
    """Return the windows over dy whose convolution is the gradient of x, or None.

    It is a convolution if the strides are 1 and the padding does not exceed the reach of the taps.
    """
    result = []
    for window in at:
        reach = (window.filter - 1) * window.dilation
        before, after = reach - window.before, reach - window.after
        if window.stride != 1 or before < 0 or after < 0:
            return None
        result.append(
            Window(window.out, window.filter, 1, window.dilation, before, after, window.size)
        )
    return tuple(result)


def _scattered(dy: Array, filter: Array, at: Windows) -> Array:
    """Add the share of each tap to the elements that it reads."""
    batch, (channels, filters) = dy.shape[0], filter.shape[-2:]
    sizes = tuple(window.out for window in at)
    blocks = list(taps(at))
    total = np.zeros((batch, *map(extent, at), channels), dy.dtype)
    if dy.size and filter.size:
        weights = filter.reshape(-1, filters)
        for part in _chunks(batch, prod(sizes) * len(weights)):
            rows = dy[part].reshape(-1, filters)
            images = (part.stop - part.start, *sizes)
            target = total[part]
            for block, one in zip(blocks, _passed(rows, weights, images, channels), strict=True):
                target[block] += one
    return unpadded(total, at)


def _passed(rows: Array, weights: Array, images: tuple[int, ...], channels: int) -> Array:
    """Return the shares of the taps, [taps, N, OH, OW, C]; layouts as in ``_Matrices``."""
    if channels >= _SHORT_RUN:
        return np.moveaxis((rows @ weights.T).reshape(*images, -1, channels), -2, 0)
    return np.moveaxis((weights @ rows.T).reshape(-1, channels, *images), 1, -1)
