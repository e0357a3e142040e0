"""Shapes given as tensors are computed on the host."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import broadcasting as host
from tensorplug.ops import broadcasting as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.BROADCAST_ARGS)(host.broadcast_args)
