"""Trigonometric and hyperbolic functions: NumPy's ufuncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelSpec, TensorType, specs
from tensorplug_cpu.execution.floating_point import ufunc
from tensorplug_cpu.jit.groups.elementary import compiled
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = Kernels()

_UNARY: dict[KernelSpec, np.ufunc] = {
    specs.ACOS: np.arccos,
    specs.ACOSH: np.arccosh,
    specs.ASIN: np.arcsin,
    specs.ASINH: np.arcsinh,
    specs.ATANH: np.arctanh,
    specs.COSH: np.cosh,
    specs.SINH: np.sinh,
    specs.TAN: np.tan,
}


def _register(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        return compiled(spec, out) or ufunc(function, out, signals=True)


for _spec, _function in _UNARY.items():
    _register(_spec, _function)


@kernels.prepare(specs.ATAN2, because="faster")
def atan2(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
    """Angle of a point, in its quadrant."""
    return ufunc(np.arctan2, out, signals=True)
