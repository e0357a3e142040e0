"""Movement from primitives."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import joining
from tensorplug.ops import movement as ops

decompositions: DecompositionTable = DecompositionTable(reads=())
decompositions.of(ops.EXPAND_DIMS)(lambda input, *, out: ops.reshape(input, out.sizes))
decompositions.of(joining.PACK, alone=True)(
    lambda xs, *, axis: joining.concat([ops.expand_dims(x, axis=axis) for x in xs], axis=axis)
)
