"""Gradients of movement: the inverse movements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import align, to_shape
from tensorplug.ops import extents, joining
from tensorplug.ops import movement as ops
from tensorplug.ops.indexing.slicing import unstack

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(ops.IDENTITY, x=lambda dy: dy)
rules.formulas(ops.RESHAPE, x=lambda dy, x_type: ops.reshape(dy, x_type.sizes))
rules.formulas(ops.EXPAND_DIMS, input=lambda dy, input_type: ops.reshape(dy, input_type.sizes))
rules.formulas(
    ops.TRANSPOSE,
    x=lambda dy, perm: ops.permute_dims(dy, [perm.index(axis) for axis in range(len(perm))]),
)
rules.formulas(ops.BROADCAST_TO, x=lambda dy: dy)


@rules.vjp(extents.SLICE, "x")
def slice_(dy: Tensor, x_type: TensorType, begin: tuple[int, ...]) -> Tensor:
    after = [
        length - first - count
        for length, first, count in zip(x_type.shape, begin, dy.shape, strict=True)
    ]
    return extents.pad(dy, list(zip(begin, after, strict=True)))


@rules.vjp(extents.PAD_V2, "x")
def pad(dy: Tensor, x_type: TensorType, paddings: tuple[tuple[int, int], ...]) -> Tensor:
    return extents.slice(dy, [before for before, _ in paddings], x_type.shape)


@rules.vjp(joining.CONCAT, "xs")
def concat(dy: Tensor, xs_type: list[TensorType], axis: int) -> list[Tensor]:
    parts, at = [], 0
    for x_type in xs_type:
        begin = [at if dimension == axis else 0 for dimension in range(x_type.rank)]
        parts.append(extents.slice(dy, begin, x_type.shape))
        at += x_type.shape[axis]
    return parts


rules.formulas(joining.PACK, xs=lambda dy, axis: list(unstack(dy, axis=axis)))
rules.batch(ops.RESHAPE)(lambda x, *, size, shape: to_shape(x, (size, *shape)))
rules.batch(ops.TRANSPOSE)(
    lambda x, *, perm: ops.permute_dims(x, (0, *(axis + 1 for axis in perm)))
)
rules.batch(ops.BROADCAST_TO)(
    lambda x, *, size, shape: ops.broadcast_to(align(x, len(shape)), (size, *shape))
)
rules.batch(extents.SLICE)(
    lambda x, *, out, size, begin: extents.slice(x, (0, *begin), (size, *out.shape))
)


@rules.batch(extents.PAD_V2)
def pad_batch(x: Tensor, *, paddings: tuple[tuple[int, int], ...], constant_value: Any) -> Tensor:
    return dispatch(extents.PAD_V2, x, paddings=((0, 0), *paddings), constant_value=constant_value)
