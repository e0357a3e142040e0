"""Reference for assigning to a strided slice: NumPy's assignment, by a written-out key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array


def strided_slice_update(
    tensor: Array,
    value: Array,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Array:
    """A copy, in which each entry of begin, end and strides stands for one index."""
    key: list[Any] = []
    for at, (first, last) in enumerate(zip(begin, end, strict=True)):
        start = None if begin_mask >> at & 1 else first
        stop = None if end_mask >> at & 1 else last
        if ellipsis_mask >> at & 1:
            key.append(Ellipsis)
        elif new_axis_mask >> at & 1:
            key.append(None)
        elif shrink_axis_mask >> at & 1:
            key.append(first)
        else:
            key.append(slice(start, stop, strides[at] if strides else 1))
    out = tensor.copy()
    out[tuple(key)] = value
    return out
