"""The gradient rule. It is written with ops, so it runs on every backend and is differentiable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.plugin import RuleTable

from tensorplug_example_swish.op import SWISH

if TYPE_CHECKING:
    from tensorplug import Tensor

rules = RuleTable()


# REPLACE: a rule for each input. For single expressions, see ``RuleTable.formulas``.
@rules.vjp(SWISH, "x")
def swish(dy: Tensor, x: Tensor, out: Tensor, beta: float) -> Tensor:
    """With s = sigmoid(beta x), the derivative is s + x beta s (1 - s), and x s is the output."""
    gate = tp.nn.sigmoid(x * beta)
    return dy * (gate + out * beta * (1.0 - gate))
