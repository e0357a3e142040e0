"""Fourier transforms by NumPy's pocketfft, in the precision of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import kernel
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = Kernels()


@kernels.prepare(specs.FFT, because="faster")
def fft(input: TensorType, *, out: TensorType) -> Call:
    return kernel(np.fft.fft, out)


@kernels.prepare(specs.IFFT, because="faster")
def ifft(input: TensorType, *, out: TensorType) -> Call:
    return kernel(np.fft.ifft, out)


@kernels.prepare(specs.RFFT, because="faster")
def rfft(input: TensorType, *, fft_length: int, out: TensorType) -> Call:
    work = working(input.dtype)  # NumPy's complex numbers have parts of float32 at least
    return kernel(lambda x: np.fft.rfft(x.astype(work, copy=False), fft_length), out)


@kernels.prepare(specs.IRFFT, because="faster")
def irfft(input: TensorType, *, fft_length: int, out: TensorType) -> Call:
    if not input.shape[-1]:  # np.fft reads memory that it has not written
        return kernel(lambda _x: np.zeros(out.shape, out.dtype.numpy), out)
    return kernel(lambda x: np.fft.irfft(x, fft_length), out)
