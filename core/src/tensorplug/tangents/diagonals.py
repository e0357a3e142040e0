"""Tangents of diagonals and bands."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import diagonals as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.DIAG, "x")
tangents.linear(ops.MATRIX_BAND_PART, "input")
tangents.linear(ops.TRIANGLE, "x")
