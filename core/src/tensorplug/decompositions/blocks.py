"""Moving blocks from Reshape and Transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import blocks as ops
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.movement import permute_dims, reshape

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.BATCH_TO_SPACE_ND)
def batch_to_space_nd(
    x: Tensor, *, block_shape: tuple[int, ...], crops: ops.Pairs, out: TensorType
) -> Tensor:
    ahead = (*block_shape, out.shape[0], *x.shape[1:])
    order = ops.cells_first_permutation(x.ndim, len(block_shape))
    back = [order.index(axis) for axis in range(len(order))]
    sizes = [size + sum(crop) for size, crop in zip(out.shape[1:], crops, strict=False)]
    whole = (out.shape[0], *sizes, *out.shape[1 + len(sizes) :])
    spread = reshape(permute_dims(reshape(x, ahead), back), whole)
    return slice_(spread, (0, *(before for before, _ in crops)), out.shape)


@decompositions.of(ops.SPACE_TO_BATCH_ND)
def space_to_batch_nd(
    x: Tensor, *, block_shape: tuple[int, ...], paddings: ops.Pairs, out: TensorType
) -> Tensor:
    rest = [(0, 0)] * (x.ndim - 1 - len(paddings))
    padded = pad(x, [(0, 0), *paddings, *rest])
    cells = reshape(padded, ops.split_spatial_axes(padded.shape, block_shape))
    order = ops.cells_first_permutation(x.ndim, len(block_shape))
    return reshape(permute_dims(cells, order), out.shape)


@decompositions.of(ops.DEPTH_TO_SPACE)
def depth_to_space(x: Tensor, *, block_size: int, data_format: str, out: TensorType) -> Tensor:
    apart, order = ops.plan_depth_rearrangement(x.type, block_size, data_format, into_depth=False)
    return reshape(permute_dims(reshape(x, apart), order), out.shape)


@decompositions.of(ops.SPACE_TO_DEPTH)
def space_to_depth(x: Tensor, *, block_size: int, data_format: str, out: TensorType) -> Tensor:
    apart, order = ops.plan_depth_rearrangement(x.type, block_size, data_format, into_depth=True)
    return reshape(permute_dims(reshape(x, apart), order), out.shape)
