"""Batching of gathers and scatters: the example is one more coordinate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.batching import BatchingTable
from tensorplug.mapping.derived import in_front, to_shape
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.creation import arange
from tensorplug.ops.elementwise import astype
from tensorplug.ops.indexing import indexing as ops
from tensorplug.ops.indexing import scattering
from tensorplug.ops.movement import broadcast_to, concat

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()

batching.leading(ops.ONE_HOT)


@batching.of(ops.GATHER_V2)
def gather(
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


@batching.of(ops.GATHER_ND)
def gather_nd(params: Tensor, indices: Tensor, *, batched: frozenset[str], size: int) -> Tensor:
    if "params" not in batched:
        return ops.gather_nd(params, indices)
    return ops.gather_nd(params, _numbered(in_front(indices, "indices" in batched, size)))


@batching.of(ops.SCATTER_ND)
def scatter_nd(
    indices: Tensor, updates: Tensor, *, shape: Shape, batched: frozenset[str], size: int
) -> Tensor:
    places, values = _at_places(indices, updates, shape, batched, size)
    return ops.scatter_nd(places, values, (size, *shape))


@batching.of(ops.TENSOR_SCATTER_UPDATE)
def tensor_scatter_update(
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    places, values = _at_places(indices, updates, out.shape, batched, size)
    return ops.tensor_scatter_update(in_front(tensor, "tensor" in batched, size), places, values)


@batching.of(scattering.TENSOR_SCATTER_REDUCE)
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
    places, values = _at_places(indices, updates, out.shape, batched, size)
    whole = in_front(tensor, "tensor" in batched, size)
    return scattering.tensor_scatter_reduce(whole, places, values, **attributes)


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
