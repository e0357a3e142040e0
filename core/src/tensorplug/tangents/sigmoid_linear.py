"""Tangents of the sigmoid-weighted linear unit."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.nn import sigmoid_linear as ops

tangents: TangentTable = TangentTable()
tangents.elementwise(ops.SILU, ops.SILU_GRAD)
