"""Tangents of movement: the tangents move likewise."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import movement as ops

tangents: TangentTable = TangentTable()
for _spec in (ops.IDENTITY, ops.RESHAPE, ops.TRANSPOSE, ops.BROADCAST_TO, ops.SLICE):
    tangents.linear(_spec, "x")
tangents.linear(ops.EXPAND_DIMS, "input")
tangents.linear(ops.PAD_V2, "x", constant_value=0)
tangents.linear(ops.CONCAT, "xs")
tangents.linear(ops.PACK, "xs")
