"""Batching of Fourier transforms, which are along the last axis."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops.fft import spectral as ops

batching: BatchingTable = BatchingTable()

for _spec in (ops.FFT, ops.IFFT, ops.RFFT, ops.IRFFT):
    batching.leading(_spec)
