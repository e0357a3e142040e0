"""Gradients of gathers and scatters: each is the other's transpose."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug import dtypes as dt
from tensorplug.ops import indexing as ops
from tensorplug.ops.creation import arange, asarray
from tensorplug.ops.elementwise import astype, where
from tensorplug.ops.movement import permute_dims, reshape
from tensorplug.ops.reduction import sum as sum_
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug.tensor import Tensor

gradients = GradientTable()
gradients.stop(ops.GATHER_V2, "indices")
gradients.stop(ops.SCATTER_ND, "indices")
gradients.stop(ops.ONE_HOT)


@gradients.wrt(ops.GATHER_V2, "x")
def gather(dy: Tensor, indices: Tensor, x_type: TensorType, axis: int, batch_dims: int) -> Tensor:
    # x is [batch, outer, length, inner], dy is [batch, outer, picked, inner]; all batches'
    # rows are scattered in one go, into one long axis.
    shape = x_type.shape
    batch, outer = prod(shape[:batch_dims]), prod(shape[batch_dims:axis])
    length, inner = shape[axis], prod(shape[axis + 1 :])
    picked = prod(indices.shape[batch_dims:])
    at = reshape(_from_front(indices, length), (batch, picked))
    rows = at + reshape(arange(batch, dtype=dt.int32) * length, (batch, 1))
    updates = permute_dims(reshape(dy, (batch, outer, picked, inner)), (0, 2, 1, 3))
    scattered = ops.scatter_nd(
        reshape(rows, (batch * picked, 1)),
        reshape(updates, (batch * picked, outer * inner)),
        (batch * length, outer * inner),
    )
    back = permute_dims(reshape(scattered, (batch, length, outer, inner)), (0, 2, 1, 3))
    return reshape(back, shape)


@gradients.wrt(ops.SCATTER_ND, "updates")
def scatter_nd(dy: Tensor, indices: Tensor, updates_type: TensorType, shape: Shape) -> Tensor:
    depth = indices.shape[-1]
    strides = [prod(shape[axis + 1 : depth]) for axis in range(depth)]
    steps = reshape(asarray(strides, dtype=dt.int32), (1,) * (indices.ndim - 1) + (depth,))
    rows = sum_(astype(indices, dt.int32) * steps, axis=-1)
    flat = reshape(dy, (prod(shape[:depth]), prod(shape[depth:])))
    picked = ops.gather(flat, reshape(rows, (prod(rows.shape),)))
    return reshape(picked, updates_type.shape)


def _from_front(indices: Tensor, length: int) -> Tensor:
    """Indices in int32, the negative ones counted from the front."""
    at = astype(indices, dt.int32)
    return where(at < 0, at + length, at)
