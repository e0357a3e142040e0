"""Gradients of windows, which are windows of the same place, and windows of each example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.mapping.derived import in_front
from tensorplug.ops.creation import zeros
from tensorplug.ops.indexing import dynamic as ops
from tensorplug.ops.joining import concat

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.DYNAMIC_SLICE, "starts", because="whole numbers")
rules.stop(ops.DYNAMIC_UPDATE_SLICE, "starts", because="whole numbers")
rules.formulas(
    ops.DYNAMIC_SLICE,
    x=lambda dy, starts, x_type: ops.dynamic_update_slice(
        zeros(x_type.shape, dtype=dy.dtype), dy, starts
    ),
)
rules.formulas(
    ops.DYNAMIC_UPDATE_SLICE,
    x=lambda dy, starts, update_type: ops.dynamic_update_slice(
        dy, zeros(update_type.shape, dtype=dy.dtype), starts
    ),
    update=lambda dy, starts, update_type: ops.dynamic_slice(
        dy, starts, update_type.shape[starts.ndim - 1 :]
    ),
)


@rules.batch(ops.DYNAMIC_SLICE)
def dynamic_slice(
    x: Tensor, starts: Tensor, *, sizes: Shape, batched: frozenset[str], size: int
) -> Tensor:
    x = in_front(x, "x" in batched, size)
    if "starts" in batched:
        return ops.dynamic_slice(x, starts, sizes)
    if starts.ndim == 1:
        return ops.dynamic_slice(x, _at_all(starts), (size, *sizes))
    return ops.dynamic_slice(x, in_front(starts, False, size), sizes)  # noqa: FBT003


@rules.batch(ops.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(
    x: Tensor, update: Tensor, starts: Tensor, *, batched: frozenset[str], size: int
) -> Tensor:
    x, update = in_front(x, "x" in batched, size), in_front(update, "update" in batched, size)
    if "starts" not in batched:
        starts = _at_all(starts) if starts.ndim == 1 else in_front(starts, False, size)  # noqa: FBT003
    return ops.dynamic_update_slice(x, update, starts)


def _at_all(starts: Tensor) -> Tensor:
    """Return the starts of a window that has all examples."""
    return concat([zeros((1,), dtype=starts.dtype), starts])
