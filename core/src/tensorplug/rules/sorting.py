"""Gradients of sorting: each cotangent goes back to its element's place."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops import sorting as ops
from tensorplug.ops.indexing.indexing import take_along_axis
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.movement import permute_dims, reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.ARG_SORT, because="gives indices")
rules.stop(ops.ARG_PARTITION, because="gives indices")
rules.formulas(
    ops.TOP_K,
    x=lambda dy_values, indices, x_type, k: _put_back(dy_values, indices, x_type.shape, k),
)


@rules.vjp(ops.SORT, "x")
def sort(dy: Tensor, x: Tensor, axis: int, *, descending: bool) -> Tensor:
    order = ops.argsort(x, axis=axis, descending=descending)
    # Swap the axis with the last one; the same swap undoes it.
    swap = list(range(x.ndim))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    moved, positions = permute_dims(dy, swap), permute_dims(order, swap)
    return permute_dims(_put_back(moved, positions, moved.shape, x.shape[axis]), swap)


def _put_back(dy: Tensor, indices: Tensor, shape: Shape, k: int) -> Tensor:
    """Return zeros of ``shape`` with ``dy`` at ``indices`` along the last axis."""
    rows, length = prod(shape[:-1]), shape[-1]
    starts = reshape(arange(rows, dtype=dt.int32) * length, (rows, 1))
    positions = reshape(indices, (rows, k)) + starts
    flat = scatter_nd(
        reshape(positions, (rows * k, 1)), reshape(dy, (rows * k,)), (rows * length,)
    )
    return reshape(flat, shape)


rules.jvp(ops.TOP_K, "x")(lambda x_dot, indices: [take_along_axis(x_dot, indices, axis=-1), None])


@rules.jvp(ops.SORT, "x")
def sort_jvp(x_dot: Tensor, x: Tensor, axis: int, *, descending: bool) -> Tensor:
    order = ops.argsort(x, axis=axis, descending=descending)
    return take_along_axis(x_dot, order, axis=axis)
