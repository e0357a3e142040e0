"""Tangents of products of matrices."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import matrix_products as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.BATCH_MAT_MUL, "a")
tangents.linear(ops.BATCH_MAT_MUL, "b")
