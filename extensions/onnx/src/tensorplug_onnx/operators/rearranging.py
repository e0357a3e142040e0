"""Operators that pad, repeat, mask and reorder elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators.movement import normal_axes, normal_axis
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host, namespace

if TYPE_CHECKING:
    from types import ModuleType

    from tensorplug_onnx.values import Host


@rule("Tile", since=6, host=[1])
def tile(x: Any, repeats: Host, *, xp: ModuleType) -> Any:
    if repeats.shape != (x.ndim,):
        raise ValueError(f"{repeats.size} repeats are given for rank {x.ndim}")
    return xp.tile(x, tuple(repeats.tolist()))


@rule("Pad", since=11, host=[1, 2, 3])
def pad(
    x: Any,
    pads: Host,
    constant_value: Host | None = None,
    axes: Host | None = None,
    *,
    xp: ModuleType,
    mode: str = "constant",
) -> Any:
    """Negative pads remove elements, before the others add some."""
    chosen = range(x.ndim) if axes is None else normal_axes(axes.tolist(), x.ndim)
    if pads.shape != (2 * len(chosen),):
        raise ValueError(f"{pads.size} pads are given for {len(chosen)} axes")
    pairs = [(0, 0)] * x.ndim
    kept = [slice(None)] * x.ndim
    for axis, before, after in zip(chosen, *pads.reshape(2, -1).tolist(), strict=True):
        pairs[axis] = max(before, 0), max(after, 0)
        kept[axis] = slice(max(-before, 0), max(x.shape[axis] + min(after, 0), 0))
    inner = x[(*kept, ...)]
    if mode != "constant" or constant_value is None:
        return xp.pad(inner, pairs, mode=mode)
    (value,) = constant_value.reshape(-1).tolist()
    return tp.pad(inner, pairs, value) if xp is tp else np.pad(inner, pairs, constant_values=value)


@rule("Pad", since=2)
def pad_2(
    x: Any, *, xp: ModuleType, pads: tuple[int, ...], mode: str = "constant", value: float = 0.0
) -> Any:
    return pad(x, np.asarray(pads, np.int64), np.asarray(value), xp=xp, mode=mode)


@rule("Trilu", raw=True)
def triangle(x: Any, k: Any | None = None, *, upper: int = 1) -> Any:
    if isinstance(x, np.ndarray):
        k = as_host(k)
    if k is None or isinstance(k, np.ndarray):
        xp = namespace(x)
        kept = xp.triu if upper else xp.tril
        return kept(x, k=0 if k is None else int(k.reshape(())))
    rows, columns = np.ogrid[tuple(map(slice, x.shape[-2:]))]
    offset, diagonal = tp.asarray(columns - rows), tp.reshape(k, ())
    return tp.where(
        offset >= diagonal if upper else offset <= diagonal, x, tp.zeros((), dtype=x.dtype)
    )


# Where the parts of a block are among the channels: before what is left of them, or after.
_BLOCKS_FIRST = "DCR"
_BLOCKS_LAST = "CRD"


@rule("DepthToSpace")
def depth_to_space(x: Any, *, xp: ModuleType, blocksize: int, mode: str = _BLOCKS_FIRST) -> Any:
    n, channels, height, width = x.shape
    b, left = blocksize, channels // blocksize**2
    if _blocks_first(mode):
        parts = xp.permute_dims(xp.reshape(x, (n, b, b, left, height, width)), (0, 3, 4, 1, 5, 2))
    else:
        parts = xp.permute_dims(xp.reshape(x, (n, left, b, b, height, width)), (0, 1, 4, 2, 5, 3))
    return xp.reshape(parts, (n, left, height * b, width * b))


@rule("SpaceToDepth")
def space_to_depth(x: Any, *, xp: ModuleType, blocksize: int, mode: str = _BLOCKS_FIRST) -> Any:
    n, channels, height, width = x.shape
    b, rows, columns = blocksize, height // blocksize, width // blocksize
    parts = xp.reshape(x, (n, channels, rows, b, columns, b))
    order = (0, 3, 5, 1, 2, 4) if _blocks_first(mode) else (0, 1, 3, 5, 2, 4)
    return xp.reshape(xp.permute_dims(parts, order), (n, channels * b * b, rows, columns))


def _blocks_first(mode: str) -> bool:
    if mode not in (_BLOCKS_FIRST, _BLOCKS_LAST):
        raise ValueError(f"mode is {mode!r}, must be {_BLOCKS_FIRST!r} or {_BLOCKS_LAST!r}")
    return mode == _BLOCKS_FIRST


@rule("ReverseSequence")
def reverse_sequence(
    x: Any, lengths: Any, *, xp: ModuleType, batch_axis: int = 1, time_axis: int = 0
) -> Any:
    if {batch_axis, time_axis} != {0, 1}:
        raise ValueError(f"batch_axis is {batch_axis} and time_axis {time_axis}, must be 0 and 1")
    place = _along(np.arange(x.shape[time_axis]), time_axis, x.ndim, np)
    length = _along(lengths, batch_axis, x.ndim, xp)
    return xp.take_along_axis(x, xp.where(place < length, length - 1 - place, place), time_axis)


@rule("TensorScatter")
def tensor_scatter(
    cache: Any, update: Any, first: Any | None = None, *, axis: int = -2, mode: str = "linear"
) -> tp.Tensor:
    if mode not in ("linear", "circular"):
        raise ValueError(f"mode is {mode!r}, must be 'linear' or 'circular'")
    at, rank = normal_axis(axis, cache.ndim), cache.ndim
    if at == 0:
        raise ValueError("axis is that of the batch")
    starts = tp.zeros(cache.shape[:1], dtype="int64") if first is None else first
    places = _along(starts, 0, rank, tp) + _along(np.arange(update.shape[at]), at, rank, np)
    if mode == "circular":
        places = tp.remainder(places, cache.shape[at])
    return tp.scatter_along_axis(cache, places, update, at)


def _along(values: Any, axis: int, rank: int, xp: ModuleType) -> Any:
    """Return a list of numbers as an array with one axis that is not 1."""
    return xp.reshape(values, tuple(-1 if at == axis else 1 for at in range(rank)))
