"""Gaussian elimination runs on the host, for devices without a kernel for it."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import linalg
from tensorplug.ops.linalg import elimination as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.LU)(linalg.lu)
