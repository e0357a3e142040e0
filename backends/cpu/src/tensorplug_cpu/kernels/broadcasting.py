"""Broadcasting of shapes that are arrays."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import KernelTable, specs
from tensorplug_cpu.execution.floating_point import without_warnings

kernels = KernelTable()
kernels.register(specs.BROADCAST_ARGS)(
    without_warnings(host_functions.broadcasting.broadcast_args)
)
