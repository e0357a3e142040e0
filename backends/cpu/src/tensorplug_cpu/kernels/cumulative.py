"""Running sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelSpec, TensorType, specs
from tensorplug_cpu.arrays import UNROUNDED, accumulating
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families import scans
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.numerics.scans import scanner

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = Kernels()


def _register(spec: KernelSpec, kind: str, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster", dtypes=UNROUNDED)
    def prepare(
        x: TensorType, *, axis: int, exclusive: bool, reverse: bool, out: TensorType
    ) -> Call:
        narrow = out.dtype.numpy
        work = accumulating(out.dtype)  # each step rounds
        if x.dtype is out.dtype:
            native = scans.scanner(
                kind, x.shape, axis, narrow, exclusive=exclusive, reverse=reverse
            )
            if native is not None:
                return without_warnings(native)
        return without_warnings(
            scanner(function, x.shape, axis, narrow, work, exclusive=exclusive, reverse=reverse)
        )


_register(specs.CUMSUM, "sum", np.add)
_register(specs.CUMPROD, "prod", np.multiply)
