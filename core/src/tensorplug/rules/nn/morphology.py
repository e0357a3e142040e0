"""Gradients of dilation: dy goes to the first largest sum of each window."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise.arithmetic import add
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.movement import reshape
from tensorplug.ops.nn.convolution import morphology as ops
from tensorplug.ops.nn.convolution.patches import find_largest_sums, taps

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
_CHOOSE = "they only choose places"
rules.stop(ops.DILATION2D_BACKPROP_INPUT, "x", "filter", because=_CHOOSE)
rules.stop(ops.DILATION2D_BACKPROP_FILTER, "x", "filter", because=_CHOOSE)

Attributes = dict[str, Any]


rules.formulas(
    ops.DILATION2D,
    x=lambda dy, x, filter, attributes: dispatch(
        ops.DILATION2D_BACKPROP_INPUT, x, filter, dy, **attributes
    ),
    filter=lambda dy, x, filter, attributes: dispatch(
        ops.DILATION2D_BACKPROP_FILTER, x, filter, dy, **attributes
    ),
)


@rules.vjp(ops.DILATION2D_BACKPROP_INPUT, "dy")
def backprop_input(ddy: Tensor, x: Tensor, filter: Tensor, attributes: Attributes) -> Tensor:
    windows = ops.windows_of(x.shape, filter.shape, attributes)
    chosen = find_largest_sums(x, filter, windows)[1]
    return _total([where(w, t, 0.0) for w, t in zip(chosen, taps(ddy, windows, 0), strict=True)])


@rules.vjp(ops.DILATION2D_BACKPROP_FILTER, "dy")
def backprop_filter(ddy: Tensor, x: Tensor, filter: Tensor, attributes: Attributes) -> Tensor:
    windows = ops.windows_of(x.shape, filter.shape, attributes)
    chosen = find_largest_sums(x, filter, windows)[1]
    rows = reshape(ddy, (prod(filter.shape[:2]), filter.shape[2]))
    return _total([where(winner, rows[at], 0.0) for at, winner in enumerate(chosen)])


def _total(parts: list[Tensor]) -> Tensor:
    return reduce(add, parts)  # a window has at least one tap
