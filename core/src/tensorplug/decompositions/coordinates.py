"""Where elements are not zero: how many there are, only the data tells."""

from __future__ import annotations

from tensorplug.onhost import coordinates
from tensorplug.ops import coordinates as ops
from tensorplug.tables import DecompositionTable

decompositions = DecompositionTable()
decompositions.on_host(ops.WHERE)(coordinates.where)
