"""Trigonometric and hyperbolic functions: NumPy's ufuncs."""

from __future__ import annotations

import numpy as np

from tensorplug.plugin import specs
from tensorplug_cpu.jit.groups import elementary
from tensorplug_cpu.kernel_table import Kernels

kernels = Kernels()
elementary.register(
    kernels,
    {
        specs.ACOS: np.arccos,
        specs.ACOSH: np.arccosh,
        specs.ASIN: np.arcsin,
        specs.ASINH: np.arcsinh,
        specs.ATANH: np.arctanh,
        specs.COSH: np.cosh,
        specs.SINH: np.sinh,
        specs.TAN: np.tan,
        specs.ATAN2: np.arctan2,
    },
)
