"""Tangents of sums by segment."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import counting as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.UNSORTED_SEGMENT_SUM, "x")
