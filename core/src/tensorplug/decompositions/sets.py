"""The different values: how many there are, only the data tells."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import sets
from tensorplug.ops import sets as ops

decompositions = DecompositionTable()
decompositions.on_host(ops.UNIQUE)(sets.unique)
