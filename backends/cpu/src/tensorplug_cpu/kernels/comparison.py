"""Comparison and logic: NumPy's ufuncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import KernelTable
from tensorplug.ops import comparison as ops
from tensorplug_cpu.quiet import ufunc

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()

_BINARY: dict[KernelSpec, np.ufunc] = {
    ops.EQUAL: np.equal,
    ops.NOT_EQUAL: np.not_equal,
    ops.LESS: np.less,
    ops.LESS_EQUAL: np.less_equal,
    ops.GREATER: np.greater,
    ops.GREATER_EQUAL: np.greater_equal,
    ops.LOGICAL_AND: np.logical_and,
    ops.LOGICAL_OR: np.logical_or,
    ops.LOGICAL_XOR: np.logical_xor,
}

_UNARY: dict[KernelSpec, np.ufunc] = {
    ops.IS_FINITE: np.isfinite,
    ops.IS_INF: np.isinf,
    ops.IS_NAN: np.isnan,
    ops.LOGICAL_NOT: np.logical_not,
}


def _register(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec)
    def prepare(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=a.dtype in dt.INEXACT)  # an ordering of NaN does


def _register_unary(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec)
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=False)


for _spec, _function in _BINARY.items():
    _register(_spec, _function)
for _spec, _function in _UNARY.items():
    _register_unary(_spec, _function)
