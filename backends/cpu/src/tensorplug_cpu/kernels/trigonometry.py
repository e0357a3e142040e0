"""Trigonometric and hyperbolic functions: NumPy's ufuncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.contract.tables import KernelTable
from tensorplug.ops import trigonometry as ops
from tensorplug_cpu.quiet import ufunc

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()

_UNARY: dict[KernelSpec, np.ufunc] = {
    ops.ACOS: np.arccos,
    ops.ACOSH: np.arccosh,
    ops.ASIN: np.arcsin,
    ops.ASINH: np.arcsinh,
    ops.ATANH: np.arctanh,
    ops.COSH: np.cosh,
    ops.SINH: np.sinh,
    ops.TAN: np.tan,
}


def _register(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec)
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=True)


for _spec, _function in _UNARY.items():
    _register(_spec, _function)


@kernels.prepare(ops.ATAN2)
def atan2(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
    """Angle of a point, in its quadrant."""
    return ufunc(np.arctan2, out, signals=True)
