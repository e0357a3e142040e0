"""Gradients of ragged tensors. Running the op on value numbers shows where each value goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.ops import ragged as ops
from tensorplug.ops.counting import unsorted_segment_sum
from tensorplug.ops.creation import asarray, full
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import less
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import reshape
from tensorplug.ops.ranges import arange
from tensorplug.ops.searching import searchsorted

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.RAGGED_GATHER, "params_nested_splits", "indices", because="whole numbers")
rules.stop(ops.RAGGED_RANGE, "limits", because="only how many numbers there are depends on it")
rules.stop(ops.RAGGED_TENSOR_TO_TENSOR, "shape", "row_partition_tensors", because="whole numbers")


@rules.vjp(ops.RAGGED_GATHER, "params_dense_values")
def gathered(
    dy: list[Tensor],
    params_nested_splits: list[Tensor],
    params_dense_values_type: TensorType,
    indices: Tensor,
) -> Tensor:
    count = params_dense_values_type.shape[0]
    *_, picked = dispatch_multiple(
        ops.RAGGED_GATHER, params_nested_splits, arange(count, dtype=dt.int32), indices
    )
    return unsorted_segment_sum(dy[-1], picked, count)


def _rows(splits: Tensor, count: int) -> Tensor:
    """Return the row of each of ``count`` values."""
    ends = slice_(splits, (1,), (-1,))
    return searchsorted(ends, arange(count, dtype=dt.int32), side="right")


@rules.vjp(ops.RAGGED_RANGE, "starts")
def range_starts(dy_rt_dense_values: Tensor, rt_nested_splits: Tensor) -> Tensor:
    rows = _rows(rt_nested_splits, dy_rt_dense_values.shape[0])
    return unsorted_segment_sum(dy_rt_dense_values, rows, rt_nested_splits.shape[0] - 1)


@rules.vjp(ops.RAGGED_RANGE, "deltas")
def range_deltas(dy_rt_dense_values: Tensor, rt_nested_splits: Tensor) -> Tensor:
    count = dy_rt_dense_values.shape[0]
    if not count:
        return range_starts(dy_rt_dense_values, rt_nested_splits)
    first = gather(rt_nested_splits, _rows(rt_nested_splits, count))
    steps = astype(arange(count, dtype=dt.int32) - first, dy_rt_dense_values.dtype)
    return range_starts(dy_rt_dense_values * steps, rt_nested_splits)


@rules.vjp(ops.RAGGED_TENSOR_TO_TENSOR, "values", "default_value")
def dense(
    wanted: frozenset[str],
    dy: Tensor,
    values_type: TensorType,
    row_partition_tensors: list[Tensor],
    row_partition_types: tuple[str, ...],
) -> dict[str, Tensor]:
    numbers = dispatch(  # of the value at each place of the result, or -1
        ops.RAGGED_TENSOR_TO_TENSOR,
        asarray(dy.shape[: dy.ndim - values_type.rank + 1], dtype=dt.int32),
        arange(values_type.shape[0], dtype=dt.int32),
        full((), -1, dtype=dt.int32),
        row_partition_tensors,
        row_partition_types=row_partition_types,
    )
    slopes = {}
    if "values" in wanted:
        slopes["values"] = unsorted_segment_sum(dy, numbers, values_type.shape[0])
    if "default_value" in wanted:
        column = reshape(numbers, (*numbers.shape, *(1,) * (values_type.rank - 1)))
        slopes["default_value"] = where(less(column, 0), dy, 0)  # summed by the tape
    return slopes
