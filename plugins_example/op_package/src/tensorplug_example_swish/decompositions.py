"""The op written with other ops, for backends without a kernel for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.plugin import DecompositionTable

from tensorplug_example_swish.op import SWISH

if TYPE_CHECKING:
    from tensorplug import Tensor

decompositions = DecompositionTable(reads=())


# REPLACE: the formula, written with other ops.
@decompositions.of(SWISH)
def swish(x: Tensor, *, beta: float) -> Tensor:
    """Replace -inf, for which the product would be -inf * 0, which is NaN instead of the limit."""
    return tp.where(x == float("-inf"), 0.0, x) * tp.nn.sigmoid(x * beta)
