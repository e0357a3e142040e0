"""Gradients of the Gaussian error linear unit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise import exp, square, tanh
from tensorplug.ops.nn import gaussian_error as ops
from tensorplug.ops.rounding import clip

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

gradients = GradientTable()

_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)  # of the normal distribution at 0
_INNER: Final = math.sqrt(2.0 / math.pi)


@gradients.wrt(ops.GELU, "x")
def gelu(dy: Tensor, x: Tensor, *, approximate: bool) -> Tensor:
    return dispatch(ops.GELU_GRAD, dy, x, approximate=approximate)


@gradients.wrt(ops.GELU_GRAD, "dy")
def gelu_grad_wrt_dy(ddy: Tensor, x: Tensor, *, approximate: bool) -> Tensor:
    return dispatch(ops.GELU_GRAD, ddy, x, approximate=approximate)


@gradients.wrt(ops.GELU_GRAD, "x")
def gelu_grad_wrt_x(ddy: Tensor, dy: Tensor, x: Tensor, *, approximate: bool) -> Tensor:
    bounded = clip(x, -ops.REACH, ops.REACH)
    curvature = _approximate_curvature(bounded) if approximate else _curvature(bounded)
    return ddy * dy * curvature


def _curvature(x: Tensor) -> Tensor:
    return (2.0 - square(x)) * exp(square(x) * -0.5) * _DENSITY


def _approximate_curvature(x: Tensor) -> Tensor:
    """Return the second derivative of ``x / 2 * (1 + tanh(u))``."""
    u = x * (1.0 + ops.CUBIC * square(x)) * _INNER
    slope, bend = (1.0 + 3.0 * ops.CUBIC * square(x)) * _INNER, x * (6.0 * ops.CUBIC * _INNER)
    t = tanh(u)
    of_tanh = 1.0 - square(t)
    return of_tanh * (slope + x * (0.5 * bend - t * square(slope)))
