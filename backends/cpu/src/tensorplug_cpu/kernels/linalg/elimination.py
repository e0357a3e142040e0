"""Gaussian elimination in NumPy, which has no function of LAPACK for it."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import KernelTable, specs
from tensorplug_cpu.arrays import UNROUNDED

kernels = KernelTable()

kernels.register(specs.LU, dtypes=UNROUNDED)(host_functions.linalg.lu)
