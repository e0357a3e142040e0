"""Batching of arrangement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tensorplug.contract.batching import BatchingTable
from tensorplug.mapping.derived import align
from tensorplug.ops import arrangement as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()

batching.leading(ops.REPEAT, "axis")
batching.leading(ops.REVERSE, "dims")


@batching.of(ops.TILE)
def tile(x: Tensor, *, reps: tuple[int, ...]) -> Tensor:
    x = align(x, len(reps))
    return ops.tile(x, (1, *[1] * (x.ndim - 1 - len(reps)), *reps))


@batching.of(ops.MIRROR_PAD)
def mirror_pad(
    x: Tensor, *, paddings: tuple[tuple[int, int], ...], mode: Literal["reflect", "symmetric"]
) -> Tensor:
    return ops.mirror_pad(x, ((0, 0), *paddings), mode)
