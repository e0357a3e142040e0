"""Tangents of moving blocks."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import blocks as ops

tangents: TangentTable = TangentTable()
for _spec in (
    *(ops.BATCH_TO_SPACE_ND, ops.SPACE_TO_BATCH_ND),
    *(ops.DEPTH_TO_SPACE, ops.SPACE_TO_DEPTH),
):
    tangents.linear(_spec, "x")
