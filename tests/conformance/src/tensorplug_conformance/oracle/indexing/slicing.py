"""References for parts of a tensor: where each element comes from, index by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.oracle.places import everywhere, spread, taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array


def unpack(value: Array, *, axis: int = 0) -> tuple[Array, ...]:
    """One part for each index along the axis."""
    at = axis % value.ndim
    shape = [n for item, n in enumerate(value.shape) if item != at]
    index = everywhere(shape)
    return tuple(
        taken(value, [*index[:at], np.array(part), *index[at:]], shape)
        for part in range(value.shape[at])
    )


def split(
    x: Array, *, num_or_size_splits: int | Sequence[int], axis: int = 0
) -> tuple[Array, ...]:
    """One part for each size; -1 stands for the rest."""
    at = axis % x.ndim
    length = x.shape[at]
    if isinstance(num_or_size_splits, int):
        sizes = [length // num_or_size_splits] * num_or_size_splits
    else:
        sizes = list(num_or_size_splits)
        if -1 in sizes:
            sizes[sizes.index(-1)] = length - sum(sizes) - 1
    first, parts = 0, []
    for size in sizes:
        shape = list(x.shape)
        shape[at] = size
        places = everywhere(shape)
        places[at] = places[at] + first
        parts.append(taken(x, places, shape))
        first += size
    return tuple(parts)


def strided_slice(x: Array, **attributes: Any) -> Array:
    """Python's indexing of a list of indices along each axis."""
    key = _key(x.ndim, **attributes)
    places: list[list[int]] = []
    shape: list[int] = []
    axis = 0
    for part in key:
        if part is None:
            shape.append(1)
            continue
        everywhere = list(range(x.shape[axis]))
        if isinstance(part, slice):
            places.append(everywhere[part])
            shape.append(len(places[-1]))
        else:
            places.append([everywhere[part]])
        axis += 1
    return taken(x, spread(places), [len(place) for place in places]).reshape(shape)


def strided_slice_grad(dy: Array, *, shape: Sequence[int], **attributes: Any) -> Array:
    """The slice of a table of positions says where each element goes."""
    positions = np.arange(int(np.prod(shape))).reshape(tuple(shape))
    out = np.zeros(positions.size, dtype=dy.dtype)
    out[strided_slice(positions, **attributes)] = dy
    return out.reshape(tuple(shape))


def _key(
    rank: int,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> list[Any]:
    """Return the masks written out as Python would index: slices, None, integers."""
    steps = strides or [1] * len(begin)
    key: list[Any] = []
    for i, (first, last, step) in enumerate(zip(begin, end, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(first)
        else:
            key.append(
                slice(None if begin_mask & bit else first, None if end_mask & bit else last, step)
            )
    if Ellipsis not in key:
        key.append(Ellipsis)
    at = key.index(Ellipsis)
    taken = sum(part is not None for part in key) - 1
    key[at : at + 1] = [slice(None)] * (rank - taken)
    return key
