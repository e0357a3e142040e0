"""Gradients of repeating and reordering: the cotangents of all copies are summed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.mapping.derived import align
from tensorplug.ops import arrangement as ops
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.movement import reshape
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.TILE, "x")
def tile(dy: Tensor, x_type: TensorType, reps: tuple[int, ...]) -> Tensor:
    sizes, counts = ops.match_ranks(x_type.shape, reps)
    parts = [size for pair in zip(counts, sizes, strict=True) for size in pair]
    copies = list(range(0, len(parts), 2))
    return reshape(sum_(reshape(dy, parts), axis=copies), x_type.shape)


@rules.vjp(ops.REPEAT, "x")
def repeat(dy: Tensor, x_type: TensorType, repeats: int, axis: int) -> Tensor:
    before, size, after = x_type.shape[:axis], x_type.shape[axis], x_type.shape[axis + 1 :]
    return sum_(reshape(dy, (*before, size, repeats, *after)), axis=axis + 1)


rules.formulas(ops.REVERSE, x=lambda dy, dims: ops.flip(dy, axis=dims))


@rules.vjp(ops.MIRROR_PAD, "x")
def mirror_pad(dy: Tensor, x_type: TensorType, paddings: ops.Pairs, mode: str) -> Tensor:
    total = dy
    for axis, (pair, size) in enumerate(zip(paddings, x_type.shape, strict=True)):
        total = _unmirror(total, axis, pair, size, 1 if mode == "reflect" else 0)
    return total


def _unmirror(dy: Tensor, axis: int, pair: tuple[int, int], size: int, skip: int) -> Tensor:
    """Add the mirrored cells along one axis to those they were copied from."""
    before, after = pair

    def part(first: int, count: int) -> Tensor:
        lead = (0,) * axis
        return slice_(dy, (*lead, first), (*(-1 for _ in lead), count))

    def placed(mirrored: Tensor, first: int) -> Tensor:
        zeros = [(0, 0)] * dy.ndim
        zeros[axis] = (first, size - first - mirrored.shape[axis])
        return pad(ops.flip(mirrored, axis=axis), zeros)

    total = part(before, size)
    if before:
        total = total + placed(part(0, before), skip)
    if after:
        total = total + placed(part(before + size, after), size - skip - after)
    return total


@rules.batch(ops.TILE)
def tile_batch(x: Tensor, *, reps: tuple[int, ...]) -> Tensor:
    x = align(x, len(reps))
    return ops.tile(x, (1, *[1] * (x.ndim - 1 - len(reps)), *reps))


rules.batch(ops.MIRROR_PAD)(
    lambda x, *, paddings, mode: ops.mirror_pad(x, ((0, 0), *paddings), mode)
)
