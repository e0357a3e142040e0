"""Tangents of reciprocals, roots and sums of exponentials."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import powers as ops

tangents: TangentTable = TangentTable()
tangents.elementwise(ops.RECIPROCAL, ops.RSQRT, ops.HYPOT, ops.LOG_ADD_EXP)
