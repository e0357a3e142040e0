"""Operators that make, move and join elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tensorplug_onnx.graph import Node
    from tensorplug_onnx.values import Host


def normal_axis(axis: int, rank: int) -> int:
    """Return the axis counted from the front.

    Raises:
        IndexError: it is out of range.

    """
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def normal_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from the front.

    Raises:
        IndexError: one is out of range.
        ValueError: there is one twice.

    """
    found = [normal_axis(int(axis), rank) for axis in axes]
    if len(set(found)) < len(found):
        raise ValueError(f"the axes {[int(axis) for axis in axes]} name one twice")
    return found


@rule("Identity", raw=True)
def identity(x: Any) -> Any:
    return x


@rule("Reshape", host=[1])
def reshape(x: Any, shape: Host, *, xp: ModuleType, allowzero: int = 0) -> Any:
    wanted = [int(size) for size in shape]
    if min(wanted, default=0) < -1:
        raise ValueError(f"the shape {wanted} has a negative size other than one -1")
    if not allowzero:
        wanted = [size or x.shape[normal_axis(at, x.ndim)] for at, size in enumerate(wanted)]
    return xp.reshape(x, tuple(wanted))


@rule("Flatten")
def flatten(x: Any, *, xp: ModuleType, axis: int = 1) -> Any:
    at = axis if axis == x.ndim else normal_axis(axis, x.ndim)
    return xp.reshape(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])))


@rule("Transpose")
def transpose(x: Any, *, xp: ModuleType, perm: Sequence[int] | None = None) -> Any:
    return xp.permute_dims(x, tuple(reversed(range(x.ndim)) if perm is None else perm))


@rule("Squeeze", since=13, host=[1])
def squeeze(x: Any, axes: Host | None = None, *, xp: ModuleType) -> Any:
    if axes is None:
        return xp.reshape(x, tuple(size for size in x.shape if size != 1))
    dropped = normal_axes(axes.tolist(), x.ndim)
    large = [axis for axis in dropped if x.shape[axis] != 1]
    if large:
        raise ValueError(f"axis {large[0]} has size {x.shape[large[0]]}, must be 1")
    return xp.reshape(x, tuple(n for axis, n in enumerate(x.shape) if axis not in dropped))


@rule("Squeeze")
def squeeze_1(x: Any, *, xp: ModuleType, axes: Sequence[int] | None = None) -> Any:
    return squeeze(x, None if axes is None else np.asarray(axes, np.int64), xp=xp)


@rule("Unsqueeze", since=13, host=[1])
def unsqueeze(x: Any, axes: Host, *, xp: ModuleType) -> Any:
    added = normal_axes(np.atleast_1d(axes).tolist(), x.ndim + axes.size)
    sizes = iter(x.shape)
    rank = range(x.ndim + axes.size)
    return xp.reshape(x, tuple(1 if axis in added else next(sizes) for axis in rank))


@rule("Unsqueeze")
def unsqueeze_1(x: Any, *, xp: ModuleType, axes: Sequence[int]) -> Any:
    return unsqueeze(x, np.asarray(axes, np.int64), xp=xp)


@rule("Expand", host=[1])
def expand(x: Any, shape: Host, *, xp: ModuleType) -> Any:
    return xp.broadcast_to(x, np.broadcast_shapes(tuple(x.shape), _sizes(shape)))


@rule("Concat")
def concat(*xs: Any, xp: ModuleType, axis: int) -> Any:
    return xp.concat(xs, axis=axis)


@rule("Slice", since=10, host=[1, 2, 3, 4])
def slice_of(
    x: Any,
    starts: Host,
    ends: Host,
    axes: Host | None = None,
    steps: Host | None = None,
    *,
    xp: ModuleType,
) -> Any:
    del xp
    count = len(starts)
    if not len(ends) == count == len(starts if axes is None else axes):
        raise ValueError("starts, ends and axes must have one length")
    chosen = normal_axes(range(count) if axes is None else axes.tolist(), x.ndim)
    places = [slice(None)] * x.ndim
    for axis, start, end, step in zip(
        chosen,
        starts.tolist(),
        ends.tolist(),
        [1] * count if steps is None else steps.tolist(),
        strict=True,
    ):
        places[axis] = _span(start, end, step, x.shape[axis])
    return x[(*places, ...)]


def _span(start: int, end: int, step: int, size: int) -> slice:
    """Return a slice with bounds as ONNX clamps them; the upper ones are Python's."""
    if step == 0:
        raise ValueError("a step is 0")
    first = max(0, start + size * (start < 0))
    stop = max(-(step < 0), end + size * (end < 0))
    return slice(first, None if stop < 0 else stop, step)


@rule("Slice")
def slice_1(
    x: Any,
    *,
    xp: ModuleType,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
) -> Any:
    bounds = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    return slice_of(x, *bounds, None if axes is None else np.asarray(axes, np.int64), xp=xp)


@rule("Split", since=13, host=[1])
def split(
    x: Any,
    sizes: Host | None = None,
    *,
    xp: ModuleType,
    node: Node,
    axis: int = 0,
    num_outputs: int | None = None,
) -> Any:
    """With ``num_outputs``, the last part may be smaller."""
    at = normal_axis(axis, x.ndim)
    total = x.shape[at]
    if sizes is None:
        count = num_outputs or len(node.outputs)
        if num_outputs is None and total % count:
            raise ValueError(f"axis {at} of size {total} has no {count} equal parts")
        part = -(-total // count)
        parts = [max(0, min(part, total - part * index)) for index in range(count)]
    else:
        parts = sizes.tolist()
    if sum(parts) != total or min(parts, default=0) < 0:
        raise ValueError(f"parts of {parts} are no split of axis {at} of size {total}")
    if xp is np:
        return tuple(np.split(x, np.cumsum(parts)[:-1], at))
    return tuple(xp.split(x, parts, at))


@rule("Split")
def split_2(
    x: Any,
    *,
    xp: ModuleType,
    node: Node,
    axis: int = 0,
    split: Sequence[int] | None = None,
) -> Any:
    return _split(x, None if split is None else np.asarray(split), xp=xp, node=node, axis=axis)


_split = split


def _sizes(shape: Host) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if min(sizes, default=0) < 0:
        raise ValueError(f"the shape {list(sizes)} has a negative size")
    return sizes
