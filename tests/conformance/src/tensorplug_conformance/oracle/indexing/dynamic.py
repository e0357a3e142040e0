"""Reference for windows whose place is data: one example after the other, by NumPy's slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_conformance.case import Array


def _windows(
    lengths: Sequence[int], starts: Array, sizes: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """Yield each example's index, and its window."""
    for example in np.ndindex(starts.shape[:-1]):
        window = []
        for start, length, size in zip(starts[example].tolist(), lengths, sizes, strict=True):
            allowed = range(length - size + 1)
            at = start + length * (start < 0)
            first = at if at in allowed else allowed[0 if at < 0 else -1]
            window.append(slice(first, first + size))
        yield example, tuple(window)


def dynamic_slice(x: Array, starts: Array, *, sizes: Sequence[int]) -> Array:
    """Stack the windows."""
    batch = starts.ndim - 1
    places: Any = [(*at, *window, ...) for at, window in _windows(x.shape[batch:], starts, sizes)]
    parts = [x[place] for place in places]
    return np.array(parts, x.dtype).reshape((*x.shape[:batch], *sizes))


def dynamic_update_slice(x: Array, update: Array, starts: Array) -> Array:
    """Assign to each window of a copy."""
    batch, out = starts.ndim - 1, x.copy()
    for at, window in _windows(x.shape[batch:], starts, update.shape[batch:]):
        place: Any = (*at, *window, ...)
        out[place] = update[at]
    return out
