"""Fourier transforms by NumPy's pocketfft, in the precision of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.floating_point import kernel

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Call

kernels = KernelTable()


@kernels.prepare(specs.FFT)
def fft(input: TensorType, *, out: TensorType) -> Call:
    return kernel(np.fft.fft, out)


@kernels.prepare(specs.IFFT)
def ifft(input: TensorType, *, out: TensorType) -> Call:
    return kernel(np.fft.ifft, out)


@kernels.prepare(specs.RFFT)
def rfft(input: TensorType, *, fft_length: int, out: TensorType) -> Call:
    if input.dtype is dt.float16:  # there is no complex32 to transform it in
        return kernel(lambda x: np.fft.rfft(x.astype(np.float32), fft_length), out)
    return kernel(lambda x: np.fft.rfft(x, fft_length), out)


@kernels.prepare(specs.IRFFT)
def irfft(input: TensorType, *, fft_length: int, out: TensorType) -> Call:
    return kernel(lambda x: np.fft.irfft(x, fft_length), out)
