"""References for repeating and reordering: where each element comes from, index by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array


def tile(x: Array, *, reps: int | Sequence[int]) -> Array:
    """``out[i] = x[i mod n]`` along each axis."""
    listed = [reps] if isinstance(reps, int) else list(reps)
    rank = max(x.ndim, len(listed))
    counts = [1] * (rank - len(listed)) + listed
    source = x.reshape([1] * (rank - x.ndim) + list(x.shape))
    sizes = [n * count for n, count in zip(source.shape, counts, strict=True)]
    out = np.empty(sizes, dtype=x.dtype)
    for at in np.ndindex(*sizes):
        out[at] = source[tuple(i % n for i, n in zip(at, source.shape, strict=True))]
    return out


def repeat(x: Array, *, repeats: int, axis: int = 0) -> Array:
    """``out[i] = x[i // repeats]`` along the axis."""
    at = axis % x.ndim
    shape = [n * repeats if item == at else n for item, n in enumerate(x.shape)]
    out = np.empty(shape, dtype=x.dtype)
    for index in np.ndindex(*shape):
        out[index] = x[(*index[:at], index[at] // repeats, *index[at + 1 :])]
    return out


def reverse(x: Array, *, dims: int | Sequence[int] | None = None) -> Array:
    """``out[i] = x[n - 1 - i]`` along the axes named."""
    listed = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    back = {axis % x.ndim for axis in listed}
    out = np.empty(x.shape, dtype=x.dtype)
    for at in np.ndindex(x.shape):
        out[at] = x[tuple(x.shape[k] - 1 - i if k in back else i for k, i in enumerate(at))]
    return out


def mirror_pad(x: Array, *, paddings: Sequence[Sequence[int]], mode: str) -> Array:
    """An element outside equals the one as far inside, counted from the edge or beside it."""
    shape = [before + n + after for (before, after), n in zip(paddings, x.shape, strict=True)]
    out = np.empty(shape, dtype=x.dtype)
    skip = 1 if mode == "reflect" else 0
    for at in np.ndindex(*shape):
        source = []
        for i, (before, _), n in zip(at, paddings, x.shape, strict=True):
            place = i - before
            if place < 0:
                place = -place - 1 + skip
            elif place >= n:
                place = 2 * n - place - 1 - skip
            source.append(place)
        out[at] = x[tuple(source)]
    return out
