"""Gradients of activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import logical_and
from tensorplug.ops.elementwise.unary import exp, tanh
from tensorplug.ops.nn import activation as ops
from tensorplug.ops.nn.cross_entropy import SOFTMAX_GRAD
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.STEP, because="constant between jumps")
rules.formulas(ops.RELU, x=lambda dy, out: where(out > 0, dy, 0.0))
rules.formulas(ops.RELU6, x=lambda dy, x: where(logical_and(x > 0, x <= 6), dy, 0.0))
# out + 1 would round small powers away
rules.formulas(ops.ELU, x=lambda dy, x: dy * where(x > 0, 1.0, _exp_below_0(x)))
rules.formulas(
    ops.ELU_GRAD,
    dy=lambda ddy, y: dispatch(ops.ELU_GRAD, ddy, y),
    y=lambda ddy, dy, y: where(y < 0, ddy * dy, 0.0),
)


rules.formulas(
    ops.SELU,
    x=lambda dy, x: (
        dy * where(x > 0, ops.SELU_SCALE, _exp_below_0(x) * (ops.SELU_SCALE * ops.SELU_ALPHA))
    ),
)


def _exp_below_0(x: Tensor) -> Tensor:
    """Return ``e**x``, and 1 for x > 0: its gradient is multiplied by 0 there, not omitted."""
    return exp(where(x > 0, 0.0, x))


rules.formulas(ops.LEAKY_RELU, x=lambda dy, x, alpha: where(x > 0, dy, dy * alpha))
rules.formulas(
    ops.PRELU,
    x=lambda dy, x, alpha: where(x > 0, dy, dy * alpha),
    alpha=lambda dy, x: where(x > 0, 0.0, dy * x),
)
rules.formulas(ops.SOFTPLUS, x=lambda dy, x: dy * ops.sigmoid(x))


@rules.vjp(ops.SIGMOID, "x")
def sigmoid(dy: Tensor, x: Tensor) -> Tensor:
    if x.dtype in dt.COMPLEX:
        rise = ops.sigmoid(x)
        return dy * rise * (1.0 - rise)
    return dispatch(ops.SIGMOID_GRAD, dy, x)  # out * (1 - out) is 0 where out is rounded to 1


rules.formulas(
    ops.SIGMOID_GRAD,
    dy=lambda ddy, x: dispatch(ops.SIGMOID_GRAD, ddy, x),
    x=lambda ddy, dy, x: dispatch(ops.SIGMOID_GRAD, ddy * dy, x) * -tanh(x * 0.5),
)
rules.formulas(ops.SOFTMAX, logits=lambda dy, out, dim: dispatch(SOFTMAX_GRAD, dy, out, dim=dim))
rules.formulas(
    ops.LOG_SOFTMAX,
    logits=lambda dy, out, axis: dy - exp(out) * sum_(dy, axis=axis, keepdims=True),
)


@rules.jvp(ops.LOG_SOFTMAX, "logits")
def log_softmax_jvp(logits_dot: Tensor, out: Tensor, axis: int) -> Tensor:
    return logits_dot - sum_(exp(out) * logits_dot, axis=axis, keepdims=True)
