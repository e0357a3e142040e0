"""Exponentials, logarithms, reciprocals and roots: NumPy's ufuncs, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelSpec, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import kernel, ufunc
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.jit.groups.elementary import compiled
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_MANY = 1 << 13  # bytes

_UNARY: dict[KernelSpec, np.ufunc] = {
    specs.LOG2: np.log2,
    specs.LOG10: np.log10,
}

_BINARY: dict[KernelSpec, np.ufunc] = {
    specs.HYPOT: np.hypot,
    specs.LOG_ADD_EXP: np.logaddexp,
}


def _register_unary(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=True)


def _register_binary(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=True)


for _spec, _function in _UNARY.items():
    _register_unary(_spec, _function)
for _spec, _function in _BINARY.items():
    _register_binary(_spec, _function)


@kernels.prepare(specs.EXPM1, because="faster")
def expm1(x: TensorType, *, out: TensorType) -> Call:
    """Exponential less 1."""
    if x.dtype in dt.COMPLEX:
        return kernel(_complex_expm1, out)
    return compiled(specs.EXPM1, out) or ufunc(np.expm1, out, signals=True)


def _complex_expm1(x: Array) -> Any:
    """Take infinities and NaN from the exponential, which has them as C99 has."""
    result = np.asarray(np.expm1(x))
    special = ~np.isfinite(x)
    if special.any():
        result[special] = np.exp(x[special]) - 1
    return result


@kernels.prepare(specs.LOG1P, because="faster")
def log1p(x: TensorType, *, out: TensorType) -> Call:
    """Logarithm of 1 + x."""
    if x.dtype in dt.COMPLEX:
        return kernel(_complex_log1p, out)
    return ufunc(np.log1p, out, signals=True)


def _complex_log1p(x: Array) -> Any:
    """Correct the real part of NumPy's near 0, which is the logarithm of |1 + x| as rounded."""
    result = np.asarray(np.log1p(x))
    near = (np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5)
    if near.any():
        a, b = x.real[near], x.imag[near]
        result.real[near] = 0.5 * np.log1p(a * (2 + a) + b * b)
    return result


@kernels.prepare(specs.RSQRT, because="faster")
def rsqrt(x: TensorType, *, out: TensorType) -> Call:
    """Square root, then its reciprocal in place."""
    one = np.ones((), out.dtype.numpy)

    def work(result: Array, x: Array) -> None:
        np.sqrt(x, out=result)
        np.divide(one, result, out=result)

    return elementwise_kernel(work, out)


@kernels.prepare(specs.RECIPROCAL, because="faster")
def reciprocal(x: TensorType, *, out: TensorType) -> Call:
    """Divide 1, which NumPy does several at a time, where that is worth another constant."""
    if x.dtype not in dt.FLOATING or out.nbytes < _MANY:
        return ufunc(np.reciprocal, out, signals=True)
    one = np.ones((), out.dtype.numpy)

    def work(result: Array, x: Array) -> None:
        np.divide(one, x, out=result)

    return elementwise_kernel(work, out)
