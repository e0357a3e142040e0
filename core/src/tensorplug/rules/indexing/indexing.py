"""Gradients of gathers and scatters, which are transposes of each other."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.mapping.derived import in_front, to_shape
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.creation import full, ones, zeros
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.indexing import indexing as ops
from tensorplug.ops.indexing import scattering, writing
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import broadcast_to, permute_dims, reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.GATHER_V2, "indices", because="whole numbers")
rules.stop(ops.GATHER_ND, "indices", because="whole numbers")
rules.stop(writing.SCATTER_ND, "indices", because="whole numbers")
rules.stop(writing.TENSOR_SCATTER_UPDATE, "indices", because="whole numbers")
rules.stop(writing.SPARSE_TO_DENSE, "sparse_indices", because="whole numbers")
rules.stop(ops.ONE_HOT, because="whole numbers")


@rules.vjp(ops.GATHER_V2, "x")
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
    scattered = writing.scatter_nd(
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


rules.formulas(
    ops.GATHER_ND,
    params=lambda dy, indices, params_type: writing.scatter_nd(indices, dy, params_type.shape),
)


@rules.vjp(writing.SCATTER_ND, "updates")
def scatter_nd(dy: Tensor, indices: Tensor, updates_type: TensorType, shape: Shape) -> Tensor:
    return ops.gather_nd(dy, _rows(indices, updates_type.shape, shape))


def _rows(indices: Tensor, updates: Shape, shape: Shape) -> Tensor:
    """Return the indices of a scatter with one row for each update."""
    depth = ops.scatter_depth(indices.shape, updates, shape)
    lead = updates[: len(updates) - (len(shape) - depth)]
    return indices if indices.shape == (*lead, depth) else reshape(indices, (*lead, depth))


rules.formulas(
    writing.TENSOR_SCATTER_UPDATE,
    tensor=lambda dy, indices, updates_type: writing.tensor_scatter_update(
        dy, indices, zeros(updates_type.shape, dtype=dy.dtype)
    ),
    updates=lambda dy, indices, updates_type: _standing(
        dy, _rows(indices, updates_type.shape, dy.shape)
    ),
)


def _standing(dy: Tensor, rows: Tensor) -> Tensor:
    """Return dy at the rows' places, but 0 for rows that a later row has overwritten."""
    lead, depth = rows.shape[:-1], rows.shape[-1]
    if prod(lead) == 1:
        return ops.gather_nd(dy, rows)
    numbers = reshape(arange(prod(lead), dtype=dt.int32), lead)
    last = writing.tensor_scatter_update(zeros(dy.shape[:depth], dtype=dt.int32), rows, numbers)
    stands = reshape(ops.gather_nd(last, rows) == numbers, (*lead, *(1,) * (dy.ndim - depth)))
    return where(stands, ops.gather_nd(dy, rows), full((), 0, dtype=dy.dtype))


@rules.vjp(writing.SPARSE_TO_DENSE, "sparse_values")
def sparse_to_dense_wrt_values(dy: Tensor, sparse_indices: Tensor, output_shape: Shape) -> Tensor:
    count = sparse_indices.shape[0] if sparse_indices.ndim else 1
    return _standing(dy, reshape(sparse_indices, (count, len(output_shape))))


@rules.vjp(writing.SPARSE_TO_DENSE, "default_value")
def sparse_to_dense_wrt_default(dy: Tensor, sparse_indices: Tensor, output_shape: Shape) -> Tensor:
    yes, no = ones((), dtype=dt.bool_), zeros((), dtype=dt.bool_)
    written = writing.sparse_to_dense(sparse_indices, yes, output_shape, no)
    return where(written, full((), 0, dtype=dy.dtype), dy)


def _count_from_front(indices: Tensor, length: int) -> Tensor:
    """Return indices in int32, with negative ones counted from the front."""
    at = astype(indices, dt.int32)
    return where(at < 0, at + length, at)


@rules.batch(ops.GATHER_V2)
def gather_batch(
    x: Tensor,
    indices: Tensor,
    *,
    axis: int,
    batch_dims: int,
    batched: frozenset[str],
    size: int,
) -> Tensor:
    if not batch_dims and "indices" not in batched:
        return ops.gather(x, indices, axis=axis + 1)
    if not batch_dims and "x" not in batched:
        return moveaxis(ops.gather(x, indices, axis=axis), axis, 0)
    x, indices = in_front(x, "x" in batched, size), in_front(indices, "indices" in batched, size)
    return ops.gather(x, indices, axis=axis + 1, batch_dims=batch_dims + 1)


@rules.batch(ops.GATHER_ND)
def gather_nd_batch(
    params: Tensor, indices: Tensor, *, batched: frozenset[str], size: int
) -> Tensor:
    if "params" not in batched:
        return ops.gather_nd(params, indices)
    return ops.gather_nd(params, _numbered(in_front(indices, "indices" in batched, size)))


@rules.batch(writing.SCATTER_ND)
def scatter_nd_batch(
    indices: Tensor, updates: Tensor, *, shape: Shape, batched: frozenset[str], size: int
) -> Tensor:
    targets, values = _at_places(indices, updates, shape, batched, size)
    return writing.scatter_nd(targets, values, (size, *shape))


@rules.batch(writing.TENSOR_SCATTER_UPDATE)
def tensor_scatter_update(
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    targets, values = _at_places(indices, updates, out.shape, batched, size)
    return writing.tensor_scatter_update(
        in_front(tensor, "tensor" in batched, size), targets, values
    )


@rules.batch(scattering.TENSOR_SCATTER_REDUCE)
def tensor_scatter_reduce(
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    attributes: dict[str, Any],
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    targets, values = _at_places(indices, updates, out.shape, batched, size)
    whole = in_front(tensor, "tensor" in batched, size)
    return scattering.tensor_scatter_reduce(whole, targets, values, **attributes)


def _at_places(
    indices: Tensor, updates: Tensor, shape: Shape, batched: frozenset[str], size: int
) -> tuple[Tensor, Tensor]:
    """Return the indices with the number of the example, and the updates of all examples."""
    indices = in_front(indices, "indices" in batched, size)
    updates = in_front(updates, "updates" in batched, size)
    rows, one = indices.shape[1:], updates.shape[1:]
    if len(rows) == 1 and shape and one == (*rows, *shape[1:]):  # one index for each update
        indices = to_shape(indices, (*indices.shape, 1))
    return _numbered(indices), updates


def _numbered(indices: Tensor) -> Tensor:
    """Return indices of all examples with the number of the example as first coordinate."""
    wide = indices if indices.dtype.itemsize >= 4 else astype(indices, dt.int32)
    lead = wide.shape[:-1]
    numbers = arange(lead[0], dtype=wide.dtype)
    column = to_shape(numbers, (lead[0], *[1] * len(lead)))
    return concat([broadcast_to(column, (*lead, 1)), wide], axis=-1)
