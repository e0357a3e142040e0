"""Gradients of movement: the inverse movements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import GradientTable
from tensorplug.ops import movement as ops
from tensorplug.ops.indexing.slicing import unstack

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

gradients: GradientTable = GradientTable()


@gradients.wrt(ops.IDENTITY, "x")
def identity(dy: Tensor) -> Tensor:
    return dy


@gradients.wrt(ops.RESHAPE, "x")
def reshape(dy: Tensor, x_type: TensorType) -> Tensor:
    return ops.reshape(dy, x_type.shape)


@gradients.wrt(ops.EXPAND_DIMS, "input")
def expand_dims(dy: Tensor, input_type: TensorType) -> Tensor:
    return ops.reshape(dy, input_type.shape)


@gradients.wrt(ops.TRANSPOSE, "x")
def transpose(dy: Tensor, perm: tuple[int, ...]) -> Tensor:
    return ops.permute_dims(dy, [perm.index(axis) for axis in range(len(perm))])


@gradients.wrt(ops.BROADCAST_TO, "x")
def broadcast_to(dy: Tensor) -> Tensor:
    return dy


@gradients.wrt(ops.SLICE, "x")
def slice_(dy: Tensor, x_type: TensorType, begin: tuple[int, ...]) -> Tensor:
    after = [
        length - first - count
        for length, first, count in zip(x_type.shape, begin, dy.shape, strict=True)
    ]
    return ops.pad(dy, list(zip(begin, after, strict=True)))


@gradients.wrt(ops.PAD_V2, "x")
def pad(dy: Tensor, x_type: TensorType, paddings: tuple[tuple[int, int], ...]) -> Tensor:
    return ops.slice(dy, [before for before, _ in paddings], x_type.shape)


@gradients.wrt(ops.CONCAT, "xs")
def concat(dy: Tensor, xs_type: list[TensorType], axis: int) -> list[Tensor]:
    parts, at = [], 0
    for x_type in xs_type:
        begin = [at if dimension == axis else 0 for dimension in range(x_type.rank)]
        parts.append(ops.slice(dy, begin, x_type.shape))
        at += x_type.shape[axis]
    return parts


@gradients.wrt(ops.PACK, "xs")
def pack(dy: Tensor, axis: int) -> list[Tensor]:
    return list(unstack(dy, axis=axis))
