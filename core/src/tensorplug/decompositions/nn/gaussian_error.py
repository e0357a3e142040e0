"""The Gaussian error linear unit from primitives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.arithmetic import maximum
from tensorplug.ops.elementwise.clipping import clip
from tensorplug.ops.elementwise.unary import exp, square
from tensorplug.ops.nn import gaussian_error as ops
from tensorplug.ops.nn.activation import sigmoid
from tensorplug.ops.special.error_functions import erfc

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())

_INNER: Final = math.sqrt(2.0 / math.pi)


@decompositions.of(ops.GELU)
def gelu(x: Tensor, *, approximate: bool) -> Tensor:
    low = maximum(x, -ops.REACH)
    share = sigmoid(_approximate_score(low)) if approximate else _share(low)
    return low * share


@decompositions.of(ops.GELU_GRAD)
def gelu_grad(dy: Tensor, x: Tensor, *, approximate: bool) -> Tensor:
    x = clip(x, -ops.REACH, ops.REACH)
    if not approximate:
        density = exp(square(x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        return dy * (_share(x) + x * density)
    score = _approximate_score(x)
    slope = (1.0 + 3.0 * ops.CUBIC * square(x)) * (2.0 * _INNER)
    return dy * (sigmoid(score) * (1.0 + x * slope * sigmoid(-score)))


def _share(x: Tensor) -> Tensor:
    """Return the normal distribution function, accurate also where it is small."""
    return 0.5 * erfc(x * -math.sqrt(0.5))


def _approximate_score(x: Tensor) -> Tensor:
    """Return that of which the sigmoid approximates the normal distribution function."""
    return x * (1.0 + ops.CUBIC * square(x)) * (2.0 * _INNER)
