"""Where elements are not zero: how many there are, only the data tells."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import coordinates
from tensorplug.ops import coordinates as ops

decompositions = DecompositionTable()
decompositions.on_host(ops.WHERE)(coordinates.where)
