"""Tangents of repeating and reordering."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import arrangement as ops

tangents: TangentTable = TangentTable()
for _spec in (ops.TILE, ops.REPEAT, ops.REVERSE, ops.MIRROR_PAD):
    tangents.linear(_spec, "x")
