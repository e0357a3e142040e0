"""Products added to something, from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import accumulation as ops
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.MULTIPLY_ADD)
def multiply_add(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x * y + z
