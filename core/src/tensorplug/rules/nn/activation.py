"""Gradients of activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.choosing import where
from tensorplug.ops.comparison import logical_and
from tensorplug.ops.elementwise import exp, tanh
from tensorplug.ops.nn import activation as ops
from tensorplug.ops.nn.cross_entropy import SOFTMAX_GRAD
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.STEP, because="constant between jumps")


@rules.vjp(ops.RELU, "x")
def relu(dy: Tensor, out: Tensor) -> Tensor:
    return where(out > 0, dy, 0.0)


@rules.vjp(ops.RELU6, "x")
def relu6(dy: Tensor, x: Tensor) -> Tensor:
    return where(logical_and(x > 0, x <= 6), dy, 0.0)


@rules.vjp(ops.ELU, "x")
def elu(dy: Tensor, x: Tensor) -> Tensor:
    return dy * where(x > 0, 1.0, _exp_below_0(x))  # out + 1 would round small powers away


@rules.vjp(ops.ELU_GRAD, "dy")
def elu_grad_wrt_dy(ddy: Tensor, y: Tensor) -> Tensor:
    return dispatch(ops.ELU_GRAD, ddy, y)


@rules.vjp(ops.ELU_GRAD, "y")
def elu_grad_wrt_y(ddy: Tensor, dy: Tensor, y: Tensor) -> Tensor:
    return where(y < 0, ddy * dy, 0.0)


@rules.vjp(ops.SELU, "x")
def selu(dy: Tensor, x: Tensor) -> Tensor:
    below = _exp_below_0(x) * (ops.SELU_SCALE * ops.SELU_ALPHA)
    return dy * where(x > 0, ops.SELU_SCALE, below)


def _exp_below_0(x: Tensor) -> Tensor:
    """Return ``e**x``, and 1 for x > 0: its gradient is multiplied by 0 there, not omitted."""
    return exp(where(x > 0, 0.0, x))


@rules.vjp(ops.LEAKY_RELU, "x")
def leaky_relu(dy: Tensor, x: Tensor, alpha: float) -> Tensor:
    return where(x > 0, dy, dy * alpha)


@rules.vjp(ops.PRELU, "x")
def prelu_wrt_x(dy: Tensor, x: Tensor, alpha: Tensor) -> Tensor:
    return where(x > 0, dy, dy * alpha)


@rules.vjp(ops.PRELU, "alpha")
def prelu_wrt_alpha(dy: Tensor, x: Tensor) -> Tensor:
    return where(x > 0, 0.0, dy * x)


@rules.vjp(ops.SOFTPLUS, "x")
def softplus(dy: Tensor, x: Tensor) -> Tensor:
    return dy * ops.sigmoid(x)


@rules.vjp(ops.SIGMOID, "x")
def sigmoid(dy: Tensor, x: Tensor) -> Tensor:
    if x.dtype in dt.COMPLEX:
        rise = ops.sigmoid(x)
        return dy * rise * (1.0 - rise)
    return dispatch(ops.SIGMOID_GRAD, dy, x)  # out * (1 - out) is 0 where out is rounded to 1


@rules.vjp(ops.SIGMOID_GRAD, "dy")
def sigmoid_grad_wrt_dy(ddy: Tensor, x: Tensor) -> Tensor:
    return dispatch(ops.SIGMOID_GRAD, ddy, x)


@rules.vjp(ops.SIGMOID_GRAD, "x")
def sigmoid_grad_wrt_x(ddy: Tensor, dy: Tensor, x: Tensor) -> Tensor:
    return dispatch(ops.SIGMOID_GRAD, ddy * dy, x) * -tanh(x * 0.5)


@rules.vjp(ops.SOFTMAX, "logits")
def softmax(dy: Tensor, out: Tensor, dim: int) -> Tensor:
    return dispatch(SOFTMAX_GRAD, dy, out, dim=dim)


@rules.vjp(ops.LOG_SOFTMAX, "logits")
def log_softmax(dy: Tensor, out: Tensor, axis: int) -> Tensor:
    return dy - exp(out) * sum_(dy, axis=axis, keepdims=True)


@rules.jvp(ops.LOG_SOFTMAX, "logits")
def log_softmax_jvp(logits_dot: Tensor, out: Tensor, axis: int) -> Tensor:
    return logits_dot - sum_(exp(out) * logits_dot, axis=axis, keepdims=True)
