"""Views of the same bits as another dtype."""

from __future__ import annotations

from tensorplug.plugin import KernelTable, host_functions, specs

kernels = KernelTable()

kernels.register(specs.BITCAST)(host_functions.bits.bitcast)
