"""Bits of integers and booleans: NumPy's ufuncs, none of which can signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.contract.tables import KernelTable
from tensorplug.ops import bitwise as ops
from tensorplug_cpu.quiet import ufunc

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()

_BINARY: dict[KernelSpec, np.ufunc] = {
    ops.BITWISE_AND: np.bitwise_and,
    ops.BITWISE_OR: np.bitwise_or,
    ops.BITWISE_XOR: np.bitwise_xor,
    ops.LEFT_SHIFT: np.left_shift,
    ops.RIGHT_SHIFT: np.right_shift,
}


def _register(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec)
    def prepare(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=False)


for _spec, _function in _BINARY.items():
    _register(_spec, _function)


@kernels.prepare(ops.INVERT)
def invert(x: TensorType, *, out: TensorType) -> Call:
    """Flip all bits; of booleans the one."""
    return ufunc(np.invert, out, signals=False)
