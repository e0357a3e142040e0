"""The op from other ops, for every backend that we wrote no kernel for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.plugin import DecompositionTable
from tensorplug_example_swish.op import SWISH

if TYPE_CHECKING:
    from tensorplug import Tensor

decompositions = DecompositionTable()


# REPLACE: the formula in other ops.
@decompositions.of(SWISH)
def swish(x: Tensor, *, beta: float) -> Tensor:
    """Where x is -inf the product would be -inf * 0, which is NaN and not the limit."""
    return tp.where(x == float("-inf"), 0.0, x) * tp.nn.sigmoid(x * beta)
