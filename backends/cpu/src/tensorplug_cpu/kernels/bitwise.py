"""Bits of integers and booleans: NumPy's ufuncs, none of which can signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelSpec, TensorType, specs
from tensorplug_cpu.execution.floating_point import ufunc
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = Kernels()

_BINARY: dict[KernelSpec, np.ufunc] = {
    specs.BITWISE_AND: np.bitwise_and,
    specs.BITWISE_OR: np.bitwise_or,
    specs.BITWISE_XOR: np.bitwise_xor,
    specs.LEFT_SHIFT: np.left_shift,
    specs.RIGHT_SHIFT: np.right_shift,
}


def _register(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=False)


for _spec, _function in _BINARY.items():
    _register(_spec, _function)


@kernels.prepare(specs.INVERT, because="faster")
def invert(x: TensorType, *, out: TensorType) -> Call:
    """Flip all bits; a boolean has one."""
    return ufunc(np.invert, out, signals=False)
