"""Tangents of assignments."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.indexing import setting as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.STRIDED_SLICE_UPDATE, "tensor", "value")
