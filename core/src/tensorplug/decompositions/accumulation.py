"""Multiply-add from primitives."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import accumulation as ops

decompositions: DecompositionTable = DecompositionTable(reads=())
decompositions.of(ops.MULTIPLY_ADD)(lambda x, y, z: x * y + z)
