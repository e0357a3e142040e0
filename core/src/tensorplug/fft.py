"""Fourier transforms, as the array API standard's extension ``fft`` has them."""

from __future__ import annotations

from tensorplug.ops.fft.spectra import (
    fftfreq,
    fftn,
    fftshift,
    ifftn,
    ifftshift,
    irfftn,
    rfftfreq,
    rfftn,
)
from tensorplug.ops.fft.spectral import fft, hfft, ifft, ihfft, irfft, rfft

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]
