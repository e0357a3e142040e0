"""Gradients of gathers and scatters, which are transposes of each other."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import GradientTable
from tensorplug.ops.creation import arange, full, ones, zeros
from tensorplug.ops.elementwise import astype, where
from tensorplug.ops.indexing import indexing as ops
from tensorplug.ops.movement import permute_dims, reshape

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

gradients: GradientTable = GradientTable()
gradients.stop(ops.GATHER_V2, "indices", because="whole numbers")
gradients.stop(ops.GATHER_ND, "indices", because="whole numbers")
gradients.stop(ops.SCATTER_ND, "indices", because="whole numbers")
gradients.stop(ops.TENSOR_SCATTER_UPDATE, "indices", because="whole numbers")
gradients.stop(ops.SPARSE_TO_DENSE, "sparse_indices", because="whole numbers")
gradients.stop(ops.ONE_HOT, because="whole numbers")


@gradients.wrt(ops.GATHER_V2, "x")
def gather(dy: Tensor, indices: Tensor, x_type: TensorType, axis: int, batch_dims: int) -> Tensor:
    # x is [batch, outer, length, inner], dy is [batch, outer, picked, inner]. One scatter puts
    # the rows of all batches into one long axis.
    shape = x_type.shape
    batch, outer = prod(shape[:batch_dims]), prod(shape[batch_dims:axis])
    length, inner = shape[axis], prod(shape[axis + 1 :])
    picked = prod(indices.shape[batch_dims:])
    rows = indices
    if batch_dims:
        at = reshape(_count_from_front(indices, length), (batch, picked))
        rows = at + reshape(arange(batch, dtype=dt.int32) * length, (batch, 1))
    updates = _swap(dy, (batch, outer, picked, inner))
    scattered = ops.scatter_nd(
        reshape(rows, (batch * picked, 1)),
        reshape(updates, (batch * picked, outer * inner)),
        (batch * length, outer * inner),
    )
    return reshape(_swap(scattered, (batch, length, outer, inner)), shape)


def _swap(x: Tensor, shape: Shape) -> Tensor:
    """Return x under a shape of four sizes, the middle two swapped."""
    if 1 in shape[1:3]:  # the elements stay in order
        return x
    return permute_dims(reshape(x, shape), (0, 2, 1, 3))


@gradients.wrt(ops.GATHER_ND, "params")
def gather_nd(dy: Tensor, indices: Tensor, params_type: TensorType) -> Tensor:
    return ops.scatter_nd(indices, dy, params_type.shape)


@gradients.wrt(ops.SCATTER_ND, "updates")
def scatter_nd(dy: Tensor, indices: Tensor, updates_type: TensorType, shape: Shape) -> Tensor:
    return ops.gather_nd(dy, _rows(indices, updates_type.shape, shape))


def _rows(indices: Tensor, updates: Shape, shape: Shape) -> Tensor:
    """Return the indices of a scatter with one row for each update."""
    depth = ops.scatter_depth(indices.shape, updates, shape)
    lead = updates[: len(updates) - (len(shape) - depth)]
    return indices if indices.shape == (*lead, depth) else reshape(indices, (*lead, depth))


@gradients.wrt(ops.TENSOR_SCATTER_UPDATE, "tensor")
def scatter_update_wrt_tensor(dy: Tensor, indices: Tensor, updates_type: TensorType) -> Tensor:
    return ops.tensor_scatter_update(dy, indices, zeros(updates_type.shape, dtype=dy.dtype))


@gradients.wrt(ops.TENSOR_SCATTER_UPDATE, "updates")
def scatter_update_wrt_updates(dy: Tensor, indices: Tensor, updates_type: TensorType) -> Tensor:
    return _standing(dy, _rows(indices, updates_type.shape, dy.shape))


def _standing(dy: Tensor, rows: Tensor) -> Tensor:
    """Return dy at the rows' places, but 0 for rows that a later row has overwritten."""
    lead, depth = rows.shape[:-1], rows.shape[-1]
    if prod(lead) == 1:
        return ops.gather_nd(dy, rows)
    numbers = reshape(arange(prod(lead), dtype=dt.int32), lead)
    last = ops.tensor_scatter_update(zeros(dy.shape[:depth], dtype=dt.int32), rows, numbers)
    stands = reshape(ops.gather_nd(last, rows) == numbers, (*lead, *(1,) * (dy.ndim - depth)))
    return where(stands, ops.gather_nd(dy, rows), full((), 0, dtype=dy.dtype))


@gradients.wrt(ops.SPARSE_TO_DENSE, "sparse_values")
def sparse_to_dense_wrt_values(dy: Tensor, sparse_indices: Tensor, output_shape: Shape) -> Tensor:
    count = sparse_indices.shape[0] if sparse_indices.ndim else 1
    return _standing(dy, reshape(sparse_indices, (count, len(output_shape))))


@gradients.wrt(ops.SPARSE_TO_DENSE, "default_value")
def sparse_to_dense_wrt_default(dy: Tensor, sparse_indices: Tensor, output_shape: Shape) -> Tensor:
    yes, no = ones((), dtype=dt.bool_), zeros((), dtype=dt.bool_)
    written = ops.sparse_to_dense(sparse_indices, yes, output_shape, no)
    return where(written, full((), 0, dtype=dy.dtype), dy)


def _count_from_front(indices: Tensor, length: int) -> Tensor:
    """Return indices in int32, with negative ones counted from the front."""
    at = astype(indices, dt.int32)
    return where(at < 0, at + length, at)
