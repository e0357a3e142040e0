"""Gradients of sparse tensors: each element gets the cotangent of its new place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops import sparse as ops
from tensorplug.ops.counting import unsorted_segment_sum
from tensorplug.ops.creation import full, ones
from tensorplug.ops.elementwise.arithmetic import maximum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.SPARSE_FILL_EMPTY_ROWS, "indices", "dense_shape", because="whole numbers")
rules.stop(ops.SPARSE_RESHAPE, because="whole numbers")
rules.stop(ops.SPARSE_SEGMENT_MEAN, "indices", "segment_ids", because="whole numbers")
rules.stop(ops.SPARSE_SEGMENT_SUM, "indices", "segment_ids", because="whole numbers")
rules.formulas(
    ops.SPARSE_FILL_EMPTY_ROWS,
    values=lambda dy_output_values, reverse_index_map: gather(dy_output_values, reverse_index_map),
)


@rules.vjp(ops.SPARSE_FILL_EMPTY_ROWS, "default_value")
def filled_default(dy_output_values: Tensor, reverse_index_map: Tensor) -> Tensor:
    ones_ = ones(reverse_index_map.shape, dtype=dt.int32)
    counts = unsorted_segment_sum(ones_, reverse_index_map, dy_output_values.shape[0])
    return where(equal(counts, 0), dy_output_values, 0)  # summed by the tape


@rules.vjp(ops.SPARSE_SEGMENT_SUM, "data")
def segment_sum(dy: Tensor, data_type: TensorType, indices: Tensor, segment_ids: Tensor) -> Tensor:
    return unsorted_segment_sum(gather(dy, segment_ids), indices, data_type.shape[0])


@rules.vjp(ops.SPARSE_SEGMENT_MEAN, "data")
def segment_mean(
    dy: Tensor, data_type: TensorType, indices: Tensor, segment_ids: Tensor
) -> Tensor:
    ones_ = ones(segment_ids.shape, dtype=dt.int32)
    counts = maximum(unsorted_segment_sum(ones_, segment_ids, dy.shape[0]), full((), 1))
    column = reshape(astype(counts, dy.dtype), (dy.shape[0], *(1,) * (dy.ndim - 1)))
    return segment_sum(dy / column, data_type, indices, segment_ids)
