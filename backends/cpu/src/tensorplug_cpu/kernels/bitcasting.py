"""Views of the same bits as another dtype."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import specs
from tensorplug_cpu.kernel_table import Kernels

kernels = Kernels()

kernels.register(specs.BITCAST, because="faster")(host_functions.bits.bitcast)
