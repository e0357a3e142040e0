"""Tangents of multiply-add."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import accumulation as ops

tangents: TangentTable = TangentTable()
tangents.elementwise(ops.MULTIPLY_ADD)
