"""Sorting by TopK of all elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import sorting as ops
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import permute_dims
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)
decompositions.of(ops.SORT)(
    lambda x, *, axis, descending: _sort(x, axis, descending=descending)[0]
)
decompositions.of(ops.ARG_SORT)(
    lambda x, *, axis, descending: _sort(x, axis, descending=descending)[1]
)
decompositions.of(ops.ARG_PARTITION)(lambda x, *, axis: ops.argsort(x, axis=axis, stable=False))


def _sort(x: Tensor, axis: int, *, descending: bool) -> tuple[Tensor, Tensor]:
    """Return the sorted elements and their indices.

    TopK gives the largest first, and the lowest index first among equals. Ascending order is
    TopK of the reversed axis, read from its end: there the lowest index of equals is first too.
    """
    swap = list(range(x.ndim))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    moved = permute_dims(x, swap)
    length = x.shape[axis]
    if not descending:
        moved = _reverse(moved)
    values, indices = ops.topk(moved, length)
    if not descending:
        values, indices = _reverse(values), length - 1 - _reverse(indices)
    return permute_dims(values, swap), permute_dims(indices, swap)


def _reverse(x: Tensor) -> Tensor:
    length = x.shape[-1]
    backwards = arange(length - 1, -1, -1, dtype=dt.int32)
    return gather(x, backwards, axis=x.ndim - 1) if length else x
