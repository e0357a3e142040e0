"""Sums by segment, and counts, as scatters that add up."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import counting as ops
from tensorplug.ops.creation import ones
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.movement import reshape
from tensorplug.ops.order import in_range
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.UNSORTED_SEGMENT_SUM)
def unsorted_segment_sum(
    x: Tensor, segment_ids: Tensor, *, num_segments: int, out: TensorType
) -> Tensor:
    # Elements outside all segments go to one extra segment, which is cut off.
    count, width = prod(segment_ids.shape), prod(out.shape[1:])
    flat = reshape(segment_ids, (count,))
    ids = where(in_range(flat, num_segments), astype(flat, dt.int32), num_segments)
    shape = (num_segments + 1, width)
    sums = scatter_nd(reshape(ids, (count, 1)), reshape(x, (count, width)), shape)
    return reshape(sums[:num_segments], out.shape)


@decompositions.of(ops.BINCOUNT)
def bincount(x: Tensor, weights: Tensor | None, *, size: int, out: TensorType) -> Tensor:
    if weights is None or not weights.size:
        weights = ones(x.shape, dtype=out.dtype)
    return ops.unsorted_segment_sum(weights, x, size)


@decompositions.of(ops.DENSE_BINCOUNT)
def dense_bincount(
    x: Tensor, weights: Tensor | None, *, size: int, binary_output: bool, out: TensorType
) -> Tensor:
    if binary_output or weights is None or not weights.size:
        counted = dt.kernel_int if binary_output else out.dtype
        weights = ones(x.shape, dtype=counted)
    numbers = astype(x, dt.int32)
    if x.ndim == 2:  # the bins of all rows form one axis
        starts = reshape(arange(x.shape[0], dtype=dt.int32) * size, (x.shape[0], 1))
        numbers = where(in_range(x, size), numbers + starts, -1)
        sums = reshape(ops.unsorted_segment_sum(weights, numbers, x.shape[0] * size), out.shape)
    else:
        sums = ops.unsorted_segment_sum(weights, x, size)
    return astype(sums > 0, out.dtype) if binary_output else sums
