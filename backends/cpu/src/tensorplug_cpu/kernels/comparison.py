"""Comparison and logic: NumPy's ufuncs, of which an ordering of NaN signals."""

from __future__ import annotations

import numpy as np

from tensorplug.plugin import specs
from tensorplug_cpu.jit.groups import elementary
from tensorplug_cpu.kernel_table import Kernels

kernels = Kernels()
elementary.register(
    kernels,
    {
        specs.EQUAL: np.equal,
        specs.NOT_EQUAL: np.not_equal,
        specs.LESS: np.less,
        specs.LESS_EQUAL: np.less_equal,
        specs.GREATER: np.greater,
        specs.GREATER_EQUAL: np.greater_equal,
        specs.LOGICAL_AND: np.logical_and,
        specs.LOGICAL_OR: np.logical_or,
        specs.LOGICAL_XOR: np.logical_xor,
    },
)
elementary.register(
    kernels,
    {
        specs.IS_FINITE: np.isfinite,
        specs.IS_INF: np.isinf,
        specs.IS_NAN: np.isnan,
        specs.LOGICAL_NOT: np.logical_not,
    },
    signals=(),
)
