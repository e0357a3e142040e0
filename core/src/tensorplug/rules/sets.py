"""Gradients of unique values: they go to the first occurrences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import sets as ops
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.movement import permute_dims, reshape

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.UNIQUE, "x")
def unique(dy_values: Tensor, indices: Tensor, x_type: TensorType, axis: int) -> Tensor:
    count = dy_values.shape[axis]
    first = reshape(ops.find_first_occurrences(indices, count), (count, 1))
    swap = list(range(x_type.rank))  # swap the axis with the first one
    swap[axis], swap[0] = 0, axis
    shape = tuple(x_type.shape[old_axis] for old_axis in swap)
    return permute_dims(scatter_nd(first, permute_dims(dy_values, swap), shape), swap)
