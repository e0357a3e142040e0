"""Broadcasting of shapes that are arrays."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

kernels = Kernels()
kernels.register(specs.BROADCAST_ARGS, because="faster")(
    without_warnings(host_functions.broadcasting.broadcast_args)
)
