"""Coordinates of nonzero elements. Their number depends on the data: the host finds them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import coordinates
from tensorplug.ops.indexing import coordinates as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.WHERE)(coordinates.where)
