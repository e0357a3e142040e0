"""Gradients of sums by segment: each summand gets the cotangent of its sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import counting as ops
from tensorplug.ops.creation import full, zeros
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import reshape
from tensorplug.ops.order import in_range

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.UNSORTED_SEGMENT_SUM, "segment_ids", because="whole numbers")
rules.stop(ops.BINCOUNT, "x", because="whole numbers")
rules.stop(ops.DENSE_BINCOUNT, "x", because="whole numbers")


def _take_at(dy: Tensor, numbers: Tensor, batch_dims: int = 0) -> Tensor:
    """Return dy at the numbers along its axis after the batch axes, 0 for numbers out of range."""
    size = dy.shape[batch_dims]
    tail = dy.shape[batch_dims + 1 :]
    zero = full((), 0, dtype=dy.dtype)
    if not size:
        return zeros((*numbers.shape, *tail), dtype=dy.dtype)
    inside = in_range(numbers, size)
    bins = where(inside, numbers, full((), 0, dtype=numbers.dtype))
    picked = gather(dy, bins, axis=batch_dims, batch_dims=batch_dims)
    return where(reshape(inside, (*numbers.shape, *(1,) * len(tail))), picked, zero)


rules.formulas(ops.UNSORTED_SEGMENT_SUM, x=lambda dy, segment_ids: _take_at(dy, segment_ids))


@rules.vjp(ops.BINCOUNT, "weights")
def bincount(dy: Tensor, x: Tensor, weights_type: TensorType) -> Tensor:
    if weights_type.shape != x.shape:  # without weights each element counts as 1
        return zeros(weights_type.shape, dtype=dy.dtype)
    return _take_at(dy, x)


@rules.vjp(ops.DENSE_BINCOUNT, "weights")
def dense_bincount(
    dy: Tensor,
    x: Tensor,
    weights_type: TensorType,
    binary_output: bool,  # noqa: FBT001
) -> Tensor:
    if binary_output or weights_type.shape != x.shape:  # only presence matters
        return zeros(weights_type.shape, dtype=dy.dtype)
    return _take_at(dy, x, x.ndim - 1)
