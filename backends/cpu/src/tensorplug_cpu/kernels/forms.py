"""Kernels that NumPy has no loops for: their forms, compiled, of any size.

Without LLVM, they are not among the kernels of this backend, and decompositions serve.
"""

from __future__ import annotations

from tensorplug.plugin import specs
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.kernel_table import Kernels

kernels = Kernels()

for _spec in (
    specs.CROP_AND_RESIZE,
    specs.DILATION2D,
    specs.DILATION2D_BACKPROP_FILTER,
    specs.DILATION2D_BACKPROP_INPUT,
    specs.LIN_SPACE,
    specs.MAX_POOL_WITH_ARGMAX,
    specs.RANDOM_INTEGERS,
):
    kernels.prepare(_spec, because="faster")(formed(_spec, always=True))
