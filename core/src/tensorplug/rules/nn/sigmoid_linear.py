"""Gradients of the sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise.clipping import clip
from tensorplug.ops.elementwise.unary import tanh
from tensorplug.ops.nn import sigmoid_linear as ops
from tensorplug.ops.nn.activation import SIGMOID_GRAD

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(ops.SILU, x=lambda dy, x: dispatch(ops.SILU_GRAD, dy, x))
rules.formulas(ops.SILU_GRAD, dy=lambda ddy, x: dispatch(ops.SILU_GRAD, ddy, x))


@rules.vjp(ops.SILU_GRAD, "x")
def silu_grad_wrt_x(ddy: Tensor, dy: Tensor, x: Tensor) -> Tensor:
    bounded = clip(x, -ops.REACH, ops.REACH)
    bend = 2.0 - bounded * tanh(bounded * 0.5)
    return dispatch(SIGMOID_GRAD, ddy * dy, bounded) * bend
