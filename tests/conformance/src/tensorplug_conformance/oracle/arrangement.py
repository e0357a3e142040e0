"""References for repeating and reordering: where each element comes from, index by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.oracle.places import everywhere, taken

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
    places = [i % max(n, 1) for i, n in zip(everywhere(sizes), source.shape, strict=True)]
    return taken(source, places, sizes)


def repeat(x: Array, *, repeats: int, axis: int = 0) -> Array:
    """``out[i] = x[i // repeats]`` along the axis."""
    at = axis % x.ndim
    shape = [n * repeats if item == at else n for item, n in enumerate(x.shape)]
    places = everywhere(shape)
    places[at] = places[at] // max(repeats, 1)
    return taken(x, places, shape)


def reverse(x: Array, *, dims: int | Sequence[int] | None = None) -> Array:
    """``out[i] = x[n - 1 - i]`` along the axes named."""
    listed = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    back = {axis % x.ndim for axis in listed}
    at = everywhere(x.shape)
    places = [
        n - 1 - i if k in back else i for k, (i, n) in enumerate(zip(at, x.shape, strict=True))
    ]
    return taken(x, places, x.shape)


def mirror_pad(x: Array, *, paddings: Sequence[Sequence[int]], mode: str) -> Array:
    """An element outside equals the one as far inside, counted from the edge or beside it."""
    shape = [before + n + after for (before, after), n in zip(paddings, x.shape, strict=True)]
    skip = 1 if mode == "reflect" else 0
    places = []
    for i, (before, _), n in zip(everywhere(shape), paddings, x.shape, strict=True):
        place = i - before
        place = np.where(place < 0, -place - 1 + skip, place)
        places.append(np.where(place >= n, 2 * n - place - 1 - skip, place))
    return taken(x, places, shape)
