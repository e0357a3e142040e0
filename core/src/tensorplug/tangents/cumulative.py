"""Tangents of running sums."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import cumulative as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.CUMSUM, "x")
