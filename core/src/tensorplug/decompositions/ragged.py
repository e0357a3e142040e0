"""Ragged tensors. The number of values depends on the data, so the host computes them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import ragged
from tensorplug.ops import ragged as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.RAGGED_GATHER)(ragged.gather)
decompositions.on_host(ops.RAGGED_RANGE)(ragged.ragged_range)
decompositions.on_host(ops.RAGGED_TENSOR_TO_TENSOR)(ragged.to_tensor)
