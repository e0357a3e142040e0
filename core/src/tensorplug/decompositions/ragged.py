"""Ragged tensors: how many values there are, only the data tells."""

from __future__ import annotations

from tensorplug.onhost import ragged
from tensorplug.ops import ragged as ops
from tensorplug.tables import DecompositionTable

decompositions = DecompositionTable()
decompositions.on_host(ops.RAGGED_GATHER)(ragged.gather)
decompositions.on_host(ops.RAGGED_RANGE)(ragged.ragged_range)
decompositions.on_host(ops.RAGGED_TENSOR_TO_TENSOR)(ragged.to_tensor)
