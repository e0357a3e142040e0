"""Comparison and logic: NumPy's ufuncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelSpec, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import ufunc
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = Kernels()

_BINARY: dict[KernelSpec, np.ufunc] = {
    specs.EQUAL: np.equal,
    specs.NOT_EQUAL: np.not_equal,
    specs.LESS: np.less,
    specs.LESS_EQUAL: np.less_equal,
    specs.GREATER: np.greater,
    specs.GREATER_EQUAL: np.greater_equal,
    specs.LOGICAL_AND: np.logical_and,
    specs.LOGICAL_OR: np.logical_or,
    specs.LOGICAL_XOR: np.logical_xor,
}

_UNARY: dict[KernelSpec, np.ufunc] = {
    specs.IS_FINITE: np.isfinite,
    specs.IS_INF: np.isinf,
    specs.IS_NAN: np.isnan,
    specs.LOGICAL_NOT: np.logical_not,
}


def _register(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=a.dtype in dt.INEXACT)  # an ordering of NaN does


def _register_unary(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=False)


for _spec, _function in _BINARY.items():
    _register(_spec, _function)
for _spec, _function in _UNARY.items():
    _register_unary(_spec, _function)
