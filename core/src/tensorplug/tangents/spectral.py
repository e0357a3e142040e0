"""Tangents of Fourier transforms."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.fft import spectral as ops

tangents: TangentTable = TangentTable()
for _spec in (ops.FFT, ops.IFFT, ops.RFFT, ops.IRFFT):
    tangents.linear(_spec, "input")
