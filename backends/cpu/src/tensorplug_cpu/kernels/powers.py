"""Exponentials, logarithms, reciprocals and roots: NumPy's ufuncs, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import kernel, ufunc
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.jit.groups import elementary
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_MANY = 1 << 13  # bytes

elementary.register(
    kernels,
    {
        specs.LOG2: np.log2,
        specs.LOG10: np.log10,
        specs.HYPOT: np.hypot,
        specs.LOG_ADD_EXP: np.logaddexp,
    },
)


@kernels.prepare(specs.EXPM1, because="faster")
def expm1(x: TensorType, *, out: TensorType) -> Call:
    """Exponential less 1."""
    if x.dtype in dt.COMPLEX:
        return kernel(_complex_expm1, out)
    return elementary.compiled(specs.EXPM1, out) or ufunc(np.expm1, out, signals=True)


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


@kernels.prepare(specs.RECIPROCAL, because="faster")
def reciprocal(x: TensorType, *, out: TensorType) -> Call:
    """Divide 1, which NumPy does several at a time, where that is worth another constant."""
    if x.dtype not in dt.FLOATING or out.nbytes < _MANY:
        return ufunc(np.reciprocal, out, signals=True)
    one = np.ones((), out.dtype.numpy)

    def work(result: Array, x: Array) -> None:
        np.divide(one, x, out=result)

    return elementwise_kernel(work, out)
