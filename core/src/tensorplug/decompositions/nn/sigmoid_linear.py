"""The sigmoid-weighted linear unit from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.arithmetic import maximum
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.clipping import clip
from tensorplug.ops.elementwise.unary import abs as abs_
from tensorplug.ops.elementwise.unary import exp
from tensorplug.ops.nn import sigmoid_linear as ops
from tensorplug.ops.nn.activation import sigmoid

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())


@decompositions.of(ops.SILU)
def silu(x: Tensor) -> Tensor:
    # Twice the root of e**-|x|: the power itself may be subnormal, the product with x is not.
    root = exp(abs_(x) * -0.5)
    side = where(x < 0, root, 1.0)
    return maximum(x, -ops.REACH) * side * side / (root * root + 1.0)


@decompositions.of(ops.SILU_GRAD)
def silu_grad(dy: Tensor, x: Tensor) -> Tensor:
    bounded = clip(x, -ops.REACH, ops.REACH)
    root = exp(abs_(bounded) * -0.5)
    side = where(x < 0, root, 1.0)  # twice, as above
    slope = side * (1.0 + bounded * sigmoid(-bounded)) * side
    return dy * (slope / (root * root + 1.0))
