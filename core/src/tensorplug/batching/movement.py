"""Batching of movement: the axes of an example count one more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.batching import BatchingTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import align, to_shape
from tensorplug.ops import movement as ops

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()

batching.leading(ops.EXPAND_DIMS, "dim")
batching.leading(ops.CONCAT, "axis")
batching.leading(ops.PACK, "axis")


@batching.of(ops.RESHAPE)
def reshape(x: Tensor, *, size: int, shape: Shape) -> Tensor:
    return to_shape(x, (size, *shape))


@batching.of(ops.TRANSPOSE)
def transpose(x: Tensor, *, perm: tuple[int, ...]) -> Tensor:
    return ops.permute_dims(x, (0, *(axis + 1 for axis in perm)))


@batching.of(ops.BROADCAST_TO)
def broadcast_to(x: Tensor, *, size: int, shape: Shape) -> Tensor:
    return ops.broadcast_to(align(x, len(shape)), (size, *shape))


@batching.of(ops.SLICE)
def slice_(x: Tensor, *, out: TensorType, size: int, begin: tuple[int, ...]) -> Tensor:
    return ops.slice(x, (0, *begin), (size, *out.shape))


@batching.of(ops.PAD_V2)
def pad(x: Tensor, *, paddings: tuple[tuple[int, int], ...], constant_value: Any) -> Tensor:
    return dispatch(ops.PAD_V2, x, paddings=((0, 0), *paddings), constant_value=constant_value)
