"""Indexing from primitives."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.creation import asarray, full, ones
from tensorplug.ops.elementwise.arithmetic import maximum
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.indexing import indexing as ops
from tensorplug.ops.indexing import writing
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import broadcast_to, expand_dims, identity, reshape
from tensorplug.ops.ranges import arange
from tensorplug.ops.sorting import topk

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.GATHER_ND)
def gather_nd(params: Tensor, indices: Tensor, *, out: TensorType) -> Tensor:
    depth = indices.shape[-1]
    lead, tail = prod(indices.shape[:-1]), params.shape[depth:]
    flat = ops.flatten_indices(reshape(indices, (lead, depth)), params.shape[:depth])
    rows = reshape(params, (prod(params.shape[:depth]), prod(tail)))
    return reshape(ops.gather(rows, flat), out.shape)


@decompositions.of(writing.TENSOR_SCATTER_UPDATE)
def tensor_scatter_update(tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    shape = tensor.shape
    depth = ops.scatter_depth(indices.shape, updates.shape, shape)
    size, width = prod(shape[:depth]), prod(shape[depth:])
    count = prod(updates.shape[: updates.ndim - (len(shape) - depth)])
    if not count or not tensor.size:
        return identity(tensor)
    # Sort by place, last update first: topk is stable. The first of each run of equal places
    # is the update that remains.
    flat = ops.flatten_indices(reshape(indices, (count, depth)), shape[:depth])
    backwards = arange(count - 1, -1, -1, dtype=dt.int32)
    positions, order = topk(ops.gather(flat, backwards), count)
    new = positions[1:] != positions[:-1]
    stands = concat([ones((1,), dtype=dt.bool_), new])
    numbers = where(stands, ops.gather(backwards, order) + 1, 0)
    # Each place gets the number of its update, counted from 1. Scattering the updates themselves
    # would lose the sign of zeros, because scattering adds.
    number = writing.scatter_nd(expand_dims(positions, axis=1), numbers, (size,))
    picked = ops.gather(reshape(updates, (count, width)), maximum(number - 1, 0))
    old = reshape(tensor, (size, width))
    return reshape(where(expand_dims(number > 0, axis=1), picked, old), shape)


@decompositions.of(writing.SPARSE_TO_DENSE)
def sparse_to_dense(
    sparse_indices: Tensor,
    sparse_values: Tensor,
    default_value: Tensor | None,
    *,
    output_shape: Shape,
) -> Tensor:
    count = sparse_indices.shape[0] if sparse_indices.ndim else 1
    dtype = sparse_values.dtype
    blank = default_value
    if blank is None:
        blank = asarray("" if dtype is dt.string else 0, dtype=dtype)
    rows = reshape(sparse_indices, (count, len(output_shape)))
    values = broadcast_to(sparse_values, (count,))
    return writing.tensor_scatter_update(broadcast_to(blank, output_shape), rows, values)


@decompositions.of(ops.ONE_HOT)
def one_hot(
    indices: Tensor, *, depth: int, on_value: Scalar, off_value: Scalar, dtype: DType
) -> Tensor:
    # Count the classes in the indices' dtype if they fit, so that uint64 needs no common type
    # with a signed one.
    bits = 8 * indices.dtype.itemsize - (indices.dtype in dt.SIGNED)
    counted = indices.dtype if depth <= 1 << bits else dt.int32
    hit = expand_dims(indices, axis=-1) == arange(depth, dtype=counted)
    return where(hit, full((), on_value, dtype=dtype), full((), off_value, dtype=dtype))
