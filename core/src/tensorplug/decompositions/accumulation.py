"""Multiply-add from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import accumulation as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable()


@decompositions.of(ops.MULTIPLY_ADD)
def multiply_add(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x * y + z
