"""Triangular systems by NumPy's LAPACK."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import KernelTable, specs
from tensorplug_cpu.arrays import UNROUNDED

kernels = KernelTable()

kernels.register(specs.MATRIX_TRIANGULAR_SOLVE, dtypes=UNROUNDED)(
    host_functions.linalg.matrix_triangular_solve
)
