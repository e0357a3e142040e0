"""Bits of integers and booleans: NumPy's ufuncs, none of which can signal."""

from __future__ import annotations

import numpy as np

from tensorplug.plugin import specs
from tensorplug_cpu.jit.groups import elementary
from tensorplug_cpu.kernel_table import Kernels

kernels = Kernels()
elementary.register(
    kernels,
    {
        specs.BITWISE_AND: np.bitwise_and,
        specs.BITWISE_OR: np.bitwise_or,
        specs.BITWISE_XOR: np.bitwise_xor,
        specs.LEFT_SHIFT: np.left_shift,
        specs.RIGHT_SHIFT: np.right_shift,
        specs.INVERT: np.invert,
    },
    signals=(),
)
