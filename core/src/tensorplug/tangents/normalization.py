"""Tangents of batch normalization, whose moments are given."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.nn import normalization as ops

tangents: TangentTable = TangentTable()
tangents.elementwise(ops.FUSED_BATCH_NORM)
tangents.linear(ops.LRN_GRAD, "dy")
