"""Gradients of the Gaussian error linear unit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise.clipping import clip
from tensorplug.ops.elementwise.unary import exp, square, tanh
from tensorplug.ops.nn import gaussian_error as ops
from tensorplug.ops.nn.activation import SIGMOID_GRAD

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)  # of the normal distribution at 0
_INNER: Final = math.sqrt(2.0 / math.pi)
_CUBE: Final = ops.CUBIC * _INNER


rules.formulas(
    ops.GELU, x=lambda dy, x, approximate: dispatch(ops.GELU_GRAD, dy, x, approximate=approximate)
)
rules.formulas(
    ops.GELU_GRAD,
    dy=lambda ddy, x, approximate: dispatch(ops.GELU_GRAD, ddy, x, approximate=approximate),
)


@rules.vjp(ops.GELU_GRAD, "x")
def gelu_grad_wrt_x(ddy: Tensor, dy: Tensor, x: Tensor, *, approximate: bool) -> Tensor:
    bounded = clip(x, -ops.REACH, ops.REACH)
    if approximate:
        return _bend_approximation(ddy * dy, bounded)
    return ddy * dy * _curvature(bounded)


def _curvature(x: Tensor) -> Tensor:
    return (2.0 - square(x)) * exp(square(x) * -0.5) * _DENSITY


def _bend_approximation(dy: Tensor, x: Tensor) -> Tensor:
    """Return dy times the second derivative of ``x * sigmoid(v)``."""
    v = x * (1.0 + ops.CUBIC * square(x)) * (2.0 * _INNER)
    slope, bend = (1.0 + 3.0 * ops.CUBIC * square(x)) * (2.0 * _INNER), x * (12.0 * _CUBE)
    rise = dispatch(SIGMOID_GRAD, dy, v)
    # The product of both slopes may overflow where the rise is 0.
    return rise * (2.0 * slope + x * bend) - rise * slope * (slope * x * tanh(v * 0.5))
