"""Triangular systems are solved by LAPACK on the host, for devices without a kernel for them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import linalg
from tensorplug.ops.linalg import triangular as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.MATRIX_TRIANGULAR_SOLVE)(linalg.matrix_triangular_solve)
