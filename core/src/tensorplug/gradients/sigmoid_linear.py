"""Gradients of the sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.nn import sigmoid_linear as ops
from tensorplug.ops.nn.activation import sigmoid
from tensorplug.ops.rounding import clip

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

gradients = GradientTable()


@gradients.wrt(ops.SILU, "x")
def silu(dy: Tensor, x: Tensor) -> Tensor:
    return dispatch(ops.SILU_GRAD, dy, x)


@gradients.wrt(ops.SILU_GRAD, "dy")
def silu_grad_wrt_dy(ddy: Tensor, x: Tensor) -> Tensor:
    return dispatch(ops.SILU_GRAD, ddy, x)


@gradients.wrt(ops.SILU_GRAD, "x")
def silu_grad_wrt_x(ddy: Tensor, dy: Tensor, x: Tensor) -> Tensor:
    bounded = clip(x, -ops.REACH, ops.REACH)
    rise = sigmoid(bounded)
    return ddy * dy * (rise * (1.0 - rise) * (2.0 + bounded * (1.0 - 2.0 * rise)))
