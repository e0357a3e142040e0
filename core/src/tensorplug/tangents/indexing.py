"""Tangents of gathers and scatters, which are linear in what they move."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.indexing import indexing as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.GATHER_V2, "x")
tangents.linear(ops.GATHER_ND, "params")
tangents.linear(ops.SCATTER_ND, "updates")
tangents.linear(ops.TENSOR_SCATTER_UPDATE, "tensor", "updates")
tangents.linear(ops.SPARSE_TO_DENSE, "sparse_values", "default_value")
