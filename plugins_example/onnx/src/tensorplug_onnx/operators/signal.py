"""Fourier transforms. ONNX has the real and the imaginary part on a last axis of length 2."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators.casting import dtype_name
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import to_numpy_dtype


@rule("DFT", host=(1,))
def dft_along_attribute(
    x: Any, length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Any:
    size = None if length is None else length.item()
    return _dft(x, size, axis, inverse=bool(inverse), onesided=bool(onesided))


@rule("DFT", since=20, host=(1, 2))
def dft(
    x: Any, length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0
) -> Any:
    size = None if length is None else length.item()
    place = -2 if axis is None else axis.item()
    return _dft(x, size, place, inverse=bool(inverse), onesided=bool(onesided))


def _dft(x: Any, length: int | None, axis: int, *, inverse: bool, onesided: bool) -> Any:
    if x.shape[-1:] not in ((1,), (2,)):
        raise ValueError("the last axis of the input has length 1 or 2")
    if not -x.ndim <= axis < x.ndim or axis % x.ndim == x.ndim - 1:
        raise ValueError(f"axis {axis} is no axis of a signal of rank {x.ndim - 1}")
    axis %= x.ndim
    real = x.shape[-1] == 1
    if inverse and onesided and length is None:
        length = 2 * (x.shape[axis] - 1)
    wide = x if str(x.dtype) in ("float32", "float64") else tp.astype(x, tp.float32)
    signal = wide[..., 0] if real else tp.complex(wide[..., 0], wide[..., 1])
    if inverse and onesided:
        return tp.astype(tp.fft.irfft(signal, n=length, axis=axis)[..., None], x.dtype)
    if real and onesided:
        found = tp.fft.rfft(signal, n=length, axis=axis)
    else:
        transform = tp.fft.ifft if inverse else tp.fft.fft
        found = transform(signal, n=length, axis=axis)
        if onesided:
            found = tp.take(found, tp.arange(found.shape[axis] // 2 + 1), axis=axis)
    return tp.astype(tp.stack([tp.real(found), tp.imag(found)], axis=-1), x.dtype)


@rule("STFT", host=(1, 3))
def stft(
    signal: Any, step: Any, window: Any = None, length: Any = None, *, onesided: int = 1
) -> Any:
    if length is not None:
        size = length.item()
    else:
        size = signal.shape[1] if window is None else window.shape[0]
    if window is not None and window.shape != (size,):
        raise ValueError(f"the window has shape {list(window.shape)}, must be [{size}]")
    frames = tp.signal.frame(tp.swapaxes(signal, 1, 2), size, step.item())
    if window is not None:
        frames = frames * window
    return _dft(
        tp.permute_dims(frames, (0, 2, 3, 1)), size, 2, inverse=False, onesided=bool(onesided)
    )


@rule("MelWeightMatrix", host=None)
def mel_weight_matrix(
    bins: Any, length: Any, sample_rate: Any, lower: Any, upper: Any, *, output_datatype: int = 1
) -> Any:
    """Each column is a triangle over the frequencies; its corners are evenly spaced in mel."""
    low, high = (2595 * np.log10(1 + float(edge) / 700) for edge in (lower, upper))
    corners = low + np.arange(int(bins) + 2) * (high - low) / (int(bins) + 2)
    hertz = 700 * (10 ** (corners / 2595) - 1)
    left, centre, right = (
        np.floor((int(length) + 1) * hertz / float(sample_rate)).astype(np.int64)[at : at + bins]
        for at in range(3)
    )
    places = np.arange(int(length) // 2 + 1)[:, None]
    rising = (places - left) / np.maximum(centre - left, 1)
    falling = (right - places) / np.maximum(right - centre, 1)
    weights = np.where(places < centre, rising, falling)
    weights = np.where((places < left) | (places >= right), 0, weights)
    weights = np.where(places == centre, 1, weights)
    return weights.astype(to_numpy_dtype(dtype_name(output_datatype)))
