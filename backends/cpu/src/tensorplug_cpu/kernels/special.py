"""The complement of the error function, in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.algorithms import complement_formulas
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.jit.groups.elementary import compiled
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.ERFC, because="faster")
def erfc(x: TensorType, *, out: TensorType) -> Call:
    """1 - erf(x), accurate also where it is small."""
    return compiled(specs.ERFC, out) or elementwise_kernel(_evaluate, out, in_blocks=True)


def _evaluate(result: Array, x: Array) -> None:
    result[...] = complement_formulas.erfc(np, x.astype(np.float64, copy=False))
