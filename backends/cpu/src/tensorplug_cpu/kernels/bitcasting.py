"""Views of the same bits as another dtype."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import KernelTable, specs

kernels = KernelTable()

kernels.register(specs.BITCAST)(host_functions.bits.bitcast)
