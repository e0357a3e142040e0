"""Combining updates by place: sums are scattered, the rest is scanned in the order of places."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import segmented_scans
from tensorplug.ops.creation import ones
from tensorplug.ops.elementwise.arithmetic import add, maximum, minimum, multiply
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.indexing import scattering as ops
from tensorplug.ops.indexing.indexing import flatten_indices, gather, scatter_depth
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.movement import expand_dims, identity, reshape
from tensorplug.ops.order import highest, lowest
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


def _choose_fold(
    reduction: str, dtype: DType
) -> tuple[Callable[[Tensor, Tensor], Tensor], Scalar]:
    """Return the operation and its neutral element."""
    if reduction == "max":
        return maximum, lowest(dtype)
    if reduction == "min":
        return minimum, highest(dtype)
    return (add, 0) if reduction == "add" else (multiply, 1)


@decompositions.of(ops.TENSOR_SCATTER_REDUCE)
def tensor_scatter_reduce(
    tensor: Tensor, indices: Tensor, updates: Tensor, *, reduction: str, include_self: bool
) -> Tensor:
    shape = tensor.shape
    depth = scatter_depth(indices.shape, updates.shape, shape)
    size, width = prod(shape[:depth]), prod(shape[depth:])
    count = prod(updates.shape[: updates.ndim - (len(shape) - depth)])
    if not count or not tensor.size:
        return identity(tensor)
    fold, neutral = _choose_fold(reduction, tensor.dtype)
    targets = flatten_indices(reshape(indices, (count, depth)), shape[:depth])
    rows, old = reshape(updates, (count, width)), reshape(tensor, (size, width))
    combine = _add_up if reduction == "add" else partial(_scan, fold=fold, neutral=neutral)
    combined, number = combine(rows, targets, size)
    touched = expand_dims(number > 0, axis=1)
    new = fold(old, combined) if include_self else combined
    return reshape(where(touched, new, old), shape)


def _add_up(rows: Tensor, targets: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the sums of rows by place, ``[size, width]``, and the number of rows of each."""
    at = expand_dims(targets, axis=1)
    once = ones((rows.shape[0],), dtype=dt.int32)
    return scatter_nd(at, rows, (size, rows.shape[1])), scatter_nd(at, once, (size,))


def _scan(
    rows: Tensor,
    targets: Tensor,
    size: int,
    *,
    fold: Callable[[Tensor, Tensor], Tensor],
    neutral: Scalar,
) -> tuple[Tensor, Tensor]:
    """Return the rows combined by place, and where each result comes from, counted from 1."""
    count = rows.shape[0]
    runs = segmented_scans.sort(targets)
    scanned = runs.scan(gather(rows, runs.order), fold, neutral)
    numbers = where(runs.last, arange(1, count + 1, dtype=dt.int32), 0)
    number = scatter_nd(expand_dims(runs.places, axis=1), numbers, (size,))
    return gather(scanned, maximum(number - 1, 0)), number
