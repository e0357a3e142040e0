"""Tangents of slices and splits."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.indexing import slicing as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.UNPACK, "value")
tangents.linear(ops.SPLIT_V, "x")
tangents.linear(ops.STRIDED_SLICE, "x")
tangents.linear(ops.STRIDED_SLICE_GRAD, "dy")
