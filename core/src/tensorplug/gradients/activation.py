"""Gradients of activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.comparison import logical_and
from tensorplug.ops.elementwise import exp, where
from tensorplug.ops.nn import activation as ops
from tensorplug.ops.nn.cross_entropy import SOFTMAX_GRAD
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

gradients = GradientTable()
gradients.stop(ops.STEP, because="constant between jumps")


@gradients.wrt(ops.RELU, "x")
def relu(dy: Tensor, out: Tensor) -> Tensor:
    return where(out > 0, dy, 0.0)


@gradients.wrt(ops.RELU6, "x")
def relu6(dy: Tensor, x: Tensor) -> Tensor:
    return where(logical_and(x > 0, x <= 6), dy, 0.0)


@gradients.wrt(ops.ELU, "x")
def elu(dy: Tensor, out: Tensor) -> Tensor:
    return dispatch(ops.ELU_GRAD, dy, out)


@gradients.wrt(ops.ELU_GRAD, "dy")
def elu_grad_wrt_dy(ddy: Tensor, y: Tensor) -> Tensor:
    return dispatch(ops.ELU_GRAD, ddy, y)


@gradients.wrt(ops.ELU_GRAD, "y")
def elu_grad_wrt_y(ddy: Tensor, dy: Tensor, y: Tensor) -> Tensor:
    return where(y < 0, ddy * dy, 0.0)


@gradients.wrt(ops.SELU, "x")
def selu(dy: Tensor, x: Tensor) -> Tensor:
    # The other branch must be finite too: its gradient is multiplied by 0, not omitted.
    below = exp(where(x > 0, 0.0, x)) * (ops.SELU_SCALE * ops.SELU_ALPHA)
    return dy * where(x > 0, ops.SELU_SCALE, below)


@gradients.wrt(ops.LEAKY_RELU, "x")
def leaky_relu(dy: Tensor, x: Tensor, alpha: float) -> Tensor:
    return where(x > 0, dy, dy * alpha)


@gradients.wrt(ops.PRELU, "x")
def prelu_wrt_x(dy: Tensor, x: Tensor, alpha: Tensor) -> Tensor:
    return where(x > 0, dy, dy * alpha)


@gradients.wrt(ops.PRELU, "alpha")
def prelu_wrt_alpha(dy: Tensor, x: Tensor) -> Tensor:
    return where(x > 0, 0.0, dy * x)


@gradients.wrt(ops.SOFTPLUS, "x")
def softplus(dy: Tensor, x: Tensor) -> Tensor:
    return dy * ops.sigmoid(x)


@gradients.wrt(ops.SIGMOID, "x")
def sigmoid(dy: Tensor, out: Tensor) -> Tensor:
    return dy * out * (1.0 - out)


@gradients.wrt(ops.SOFTMAX, "logits")
def softmax(dy: Tensor, out: Tensor, dim: int) -> Tensor:
    return dispatch(SOFTMAX_GRAD, dy, out, dim=dim)


@gradients.wrt(ops.LOG_SOFTMAX, "logits")
def log_softmax(dy: Tensor, out: Tensor, axis: int) -> Tensor:
    return dy - exp(out) * sum_(dy, axis=axis, keepdims=True)
