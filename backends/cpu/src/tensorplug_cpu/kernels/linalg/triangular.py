"""Triangular systems by NumPy's LAPACK."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import specs
from tensorplug_cpu.arrays import UNROUNDED
from tensorplug_cpu.kernel_table import Kernels

kernels = Kernels()

kernels.register(specs.MATRIX_TRIANGULAR_SOLVE, because="faster", dtypes=UNROUNDED)(
    host_functions.linalg.matrix_triangular_solve
)
