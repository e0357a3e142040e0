"""Gradient of the sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import sigmoid_linear as ops
from tensorplug.ops.activation import sigmoid
from tensorplug.ops.rounding import clip
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

gradients = GradientTable()


@gradients.wrt(ops.SILU, "x")
def silu(dy: Tensor, x: Tensor) -> Tensor:
    bounded = clip(x, -ops.REACH, ops.REACH)
    rise = sigmoid(x)
    return dy * (rise * (1.0 + bounded * (1.0 - rise)))
