"""Tangents of sums of rows by segment."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import sparse as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.SPARSE_SEGMENT_SUM, "data")
tangents.linear(ops.SPARSE_SEGMENT_MEAN, "data")
