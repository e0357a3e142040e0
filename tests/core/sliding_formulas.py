"""Convolution and max-pooling as their definitions read: loops over positions and taps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .sliding import positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sliding import Sliding

Place = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def _first(window: Sliding, axis: int, count: int) -> int:
    """Return where the first position starts: minus the padding before."""
    if window.pad == "valid":
        return 0
    if isinstance(window.pad, int):
        return -window.pad
    if window.pad != "same":
        return -int(window.pad[axis + (1 if window.data_format == "NHWC" else 2)][0])
    stride, dilation = _pair(window.strides)[axis], _pair(window.dilations)[axis]
    reach = (window.taps[axis] - 1) * dilation + 1
    return -(max((count - 1) * stride + reach - window.image[axis], 0) // 2)


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def places(window: Sliding) -> Iterator[Place]:
    """Yield (position, tap, element) for all taps that lie on the image, in row-major order."""
    counts = positions(window)
    first = [_first(window, axis, counts[axis]) for axis in (0, 1)]
    strides, dilations = _pair(window.strides), _pair(window.dilations)
    for at in np.ndindex(*counts):
        for tap in np.ndindex(*window.taps):
            row, column = (
                first[axis] + at[axis] * strides[axis] + tap[axis] * dilations[axis]
                for axis in (0, 1)
            )
            if 0 <= row < window.image[0] and 0 <= column < window.image[1]:
                yield (at[0], at[1]), (tap[0], tap[1]), (row, column)


def channels_last(x: np.ndarray, window: Sliding) -> np.ndarray:
    return np.moveaxis(x, 1, -1) if window.data_format == "NCHW" else x


def restored(x: np.ndarray, window: Sliding) -> np.ndarray:
    return np.moveaxis(x, -1, 1) if window.data_format == "NCHW" else x


def convolved(x: np.ndarray, filter: np.ndarray, window: Sliding) -> np.ndarray:
    image = channels_last(x, window)
    out = np.zeros((len(x), *positions(window), filter.shape[3]), x.dtype)
    for (i, j), tap, (row, column) in places(window):
        out[:, i, j] += image[:, row, column] @ filter[tap]
    return restored(out, window)


def input_gradient(dy: np.ndarray, filter: np.ndarray, window: Sliding) -> np.ndarray:
    arriving = channels_last(dy, window)
    out = np.zeros((len(dy), *window.image, filter.shape[2]), dy.dtype)
    for (i, j), tap, (row, column) in places(window):
        out[:, row, column] += arriving[:, i, j] @ filter[tap].T
    return restored(out, window)


def filter_gradient(x: np.ndarray, dy: np.ndarray, window: Sliding) -> np.ndarray:
    image, arriving = channels_last(x, window), channels_last(dy, window)
    out = np.zeros((*window.taps, image.shape[3], arriving.shape[3]), dy.dtype)
    for (i, j), tap, (row, column) in places(window):
        out[tap] += image[:, row, column].T @ arriving[:, i, j]
    return out


def lowest(dtype: Any) -> Any:
    return -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def pooled(x: np.ndarray, window: Sliding) -> np.ndarray:
    out = np.full((len(x), *positions(window), x.shape[3]), lowest(x.dtype), x.dtype)
    for (i, j), _, (row, column) in places(window):
        out[:, i, j] = np.maximum(out[:, i, j], x[:, row, column])
    return out


def pooled_gradient(dy: np.ndarray, x: np.ndarray, window: Sliding) -> np.ndarray:
    best, out = pooled(x, window), np.zeros(x.shape, dy.dtype)
    found = np.zeros(best.shape, bool)
    for (i, j), _, (row, column) in places(window):
        element, top = x[:, row, column], best[:, i, j]
        wins = ((element == top) | (np.isnan(element) & np.isnan(top))) & ~found[:, i, j]
        out[:, row, column] += np.where(wins, dy[:, i, j], 0)
        found[:, i, j] |= wins
    return out
