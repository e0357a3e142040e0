"""The different values: how many there are, only the data tells."""

from __future__ import annotations

from tensorplug.onhost import sets
from tensorplug.ops import sets as ops
from tensorplug.tables import DecompositionTable

decompositions = DecompositionTable()
decompositions.on_host(ops.UNIQUE)(sets.unique)
