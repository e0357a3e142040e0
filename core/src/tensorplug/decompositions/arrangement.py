"""Repeating and reordering from BroadcastTo, GatherV2 and Concat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import arrangement as ops
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import broadcast_to, reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable()


@decompositions.of(ops.TILE)
def tile(x: Tensor, *, reps: tuple[int, ...], out: TensorType) -> Tensor:
    thin: list[int] = []
    wide: list[int] = []
    for size, count in zip(*ops.match_ranks(x.shape, reps), strict=True):
        if count != 1:  # new axes for the copies
            thin.append(1)
            wide.append(count)
        thin.append(size)
        wide.append(size)
    return reshape(broadcast_to(reshape(x, thin), wide), out.shape)


@decompositions.of(ops.REPEAT)
def repeat(x: Tensor, *, repeats: int, axis: int, out: TensorType) -> Tensor:
    before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
    thin = reshape(x, (*before, 1, *after))
    return reshape(broadcast_to(thin, (*before, repeats, *after)), out.shape)


@decompositions.of(ops.REVERSE)
def reverse(x: Tensor, *, dims: tuple[int, ...]) -> Tensor:
    result = x
    for axis in dims:
        if x.shape[axis] > 1:
            backwards = arange(x.shape[axis] - 1, -1, -1, dtype=dt.int32)
            result = gather(result, backwards, axis=axis)
    return result


@decompositions.of(ops.MIRROR_PAD)
def mirror_pad(x: Tensor, *, paddings: ops.Pairs, mode: str) -> Tensor:
    skip = 1 if mode == "reflect" else 0
    result = x
    for axis, (before, after) in enumerate(paddings):
        size, lead = x.shape[axis], (0,) * axis
        parts = [result]
        if before:
            mirrored = slice_(result, (*lead, skip), (*(-1 for _ in lead), before))
            parts.insert(0, ops.flip(mirrored, axis=axis))
        if after:
            first = size - skip - after
            mirrored = slice_(result, (*lead, first), (*(-1 for _ in lead), after))
            parts.append(ops.flip(mirrored, axis=axis))
        result = concat(parts, axis=axis) if len(parts) > 1 else result
    return result
