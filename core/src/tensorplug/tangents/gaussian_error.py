"""Tangents of the Gaussian error linear unit."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.nn import gaussian_error as ops

tangents: TangentTable = TangentTable()
tangents.elementwise(ops.GELU, ops.GELU_GRAD)
