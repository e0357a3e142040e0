"""Bits are read as another dtype on the host: no op on numbers can do so for all of them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import bits
from tensorplug.ops.elementwise import bitcasting as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.BITCAST)(bits.bitcast)
