"""Signals: windows, frames, short-time Fourier transforms."""

from __future__ import annotations

from tensorplug.ops.signal import (
    cosine_window,
    enclosing_power_of_two,
    frame,
    hamming_window,
    hann_window,
    stft,
)

__all__ = [
    "cosine_window",
    "enclosing_power_of_two",
    "frame",
    "hamming_window",
    "hann_window",
    "stft",
]
