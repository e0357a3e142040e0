"""What is read from shapes given as tensors is worked out on the host."""

from __future__ import annotations

from tensorplug.onhost import broadcasting as host
from tensorplug.ops import broadcasting as ops
from tensorplug.tables import DecompositionTable

decompositions = DecompositionTable()
decompositions.on_host(ops.BROADCAST_ARGS)(host.broadcast_args)
