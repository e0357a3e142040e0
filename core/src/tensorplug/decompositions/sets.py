"""Unique values. Their number depends on the data, so the host finds them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import sets
from tensorplug.ops import sets as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.UNIQUE)(sets.unique)
