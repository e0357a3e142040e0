"""Tangents of bounds and neighbours; those of steps are zero."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import rounding as ops

tangents: TangentTable = TangentTable()
tangents.elementwise(ops.CLIP_BY_VALUE, ops.NEXT_AFTER)
