"""The Gaussian error linear unit from primitives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise import erf, exp, maximum, square, tanh
from tensorplug.ops.nn import gaussian_error as ops
from tensorplug.ops.rounding import clip

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.GELU)
def gelu(x: Tensor, *, approximate: bool) -> Tensor:
    low = maximum(x, -ops.REACH)
    return low * (0.5 * (1.0 + _side(low, approximate=approximate)))


@decompositions.of(ops.GELU_GRAD)
def gelu_grad(dy: Tensor, x: Tensor, *, approximate: bool) -> Tensor:
    x = clip(x, -ops.REACH, ops.REACH)
    side = _side(x, approximate=approximate)
    if approximate:
        slope = (1.0 + 3.0 * ops.CUBIC * square(x)) * math.sqrt(2.0 / math.pi)
        change = 0.5 * (1.0 - square(side)) * slope
    else:
        change = exp(square(x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
    return dy * (0.5 * (1.0 + side) + x * change)


def _side(x: Tensor, *, approximate: bool) -> Tensor:
    """Return ``2 * Phi(x) - 1``, Phi being the normal distribution function."""
    if not approximate:
        return erf(x * math.sqrt(0.5))
    return tanh(x * (1.0 + ops.CUBIC * square(x)) * math.sqrt(2.0 / math.pi))
