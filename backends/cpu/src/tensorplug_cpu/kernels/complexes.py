"""Complex numbers: parts are views, wholes are filled part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import kernel, ufunc
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


def _itself(x: Array) -> Array:
    return x


@kernels.prepare(specs.COMPLEX, because="faster")
def complex(real: TensorType, imag: TensorType, *, out: TensorType) -> Call:
    """Write both parts into a new array, so that each stays exactly what it is."""

    def work(whole: Array, real: Array, imag: Array) -> None:
        whole.real = real
        whole.imag = imag

    return elementwise_kernel(work, out)


@kernels.prepare(specs.REAL, because="faster")
def real(input: TensorType, *, out: TensorType) -> Call:
    """Return a view of the real part."""
    return kernel(lambda x: x.real, out) if input.dtype in dt.COMPLEX else _itself


@kernels.prepare(specs.IMAG, because="faster")
def imag(input: TensorType, *, out: TensorType) -> Call:
    """Return a view of the imaginary part; zeros of real numbers."""
    if input.dtype in dt.COMPLEX:
        return kernel(lambda x: x.imag, out)
    shape, dtype = out.shape, out.dtype.numpy
    return kernel(lambda _: np.zeros(shape, dtype), out)


@kernels.prepare(specs.COMPLEX_ABS, because="faster")
def complex_abs(x: TensorType, *, out: TensorType) -> Call:
    """Modulus, without overflow on the way."""
    return ufunc(np.absolute, out, signals=True)


@kernels.prepare(specs.CONJ, because="faster")
def conj(x: TensorType, *, out: TensorType) -> Call:
    """Turn the sign of the imaginary part."""
    return ufunc(np.conjugate, out, signals=False) if x.dtype in dt.COMPLEX else _itself
