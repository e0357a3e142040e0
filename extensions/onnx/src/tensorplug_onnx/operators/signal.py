"""Fourier transforms. ONNX has the real and the imaginary part on a last axis of length 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators.casting import dtype_name
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import has_dtype, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    if length is None:
        length = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    wide = x if str(x.dtype) in ("float32", "float64") else tp.astype(x, tp.float32)
    complex_dtype = "complex64" if str(wide.dtype) == "float32" else "complex128"
    transform = _by_complex_numbers if has_dtype(complex_dtype) else _by_matrices
    parts = tuple(tp.take(wide, at, axis=-1) for at in range(x.shape[-1]))
    found = transform(parts, length, axis, inverse=inverse, onesided=onesided)
    return tp.astype(tp.stack(found, axis=-1), x.dtype)


# These take and return a real part and, unless it is 0, an imaginary one.


def _by_complex_numbers(
    parts: Sequence[Any], length: int, axis: int, *, inverse: bool, onesided: bool
) -> tuple[Any, ...]:
    signal = tp.complex(*parts) if len(parts) > 1 else parts[0]
    if inverse:
        if onesided:
            return (tp.fft.irfft(signal, n=length, axis=axis),)
        found = tp.fft.ifft(signal, n=length, axis=axis)
    elif len(parts) > 1:
        found = tp.fft.fft(signal, n=length, axis=axis)
        if onesided:
            found = tp.take(found, tp.arange(length // 2 + 1), axis=axis)
    else:
        found = tp.fft.rfft(signal, n=length, axis=axis)
        if not onesided:
            others = tp.arange(length - length // 2 - 1, 0, -1)
            mirrored = tp.conj(tp.take(found, others, axis=axis))
            found = tp.concat([found, mirrored], axis=axis)
    return tp.real(found), tp.imag(found)


def _by_matrices(
    parts: Sequence[Any], length: int, axis: int, *, inverse: bool, onesided: bool
) -> tuple[Any, ...]:
    """Return the transform by products with the cosines and sines, for devices without complex."""
    half = length // 2 + 1
    count = half if inverse and onesided else length
    given = [_of_length(tp.moveaxis(part, axis, -1), count) for part in parts]
    kept = half if onesided and not inverse else length
    turns = np.outer(np.arange(count), np.arange(kept)) % length / length
    waves = np.exp((2j if inverse else -2j) * np.pi * turns)
    if inverse:
        waves /= length
    if inverse and onesided:  # the frequencies that are not there are conjugates of these
        waves[1 : (length + 1) // 2] *= 2
    cosines, sines = (tp.asarray(one, dtype=parts[0].dtype) for one in (waves.real, waves.imag))
    real, imaginary = given[0] @ cosines, given[0] @ sines
    if len(given) > 1:
        real, imaginary = real - given[1] @ sines, imaginary + given[1] @ cosines
    found = (real,) if inverse and onesided else (real, imaginary)
    return tuple(tp.moveaxis(part, -1, axis) for part in found)


def _of_length(x: Any, length: int) -> Any:
    """Return x cut to a length on the last axis, or continued with zeros."""
    lacking = length - x.shape[-1]
    if lacking <= 0:
        return x[..., :length]
    return tp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, lacking)])


@rule("STFT", host=(1, 3))
def stft(
    signal: Any, step: Any, window: Any = None, length: Any = None, *, onesided: int = 1
) -> Any:
    """A real signal may lack its last axis, of length 1: PyTorch's exporters leave it out."""
    if signal.ndim == 2:
        signal = tp.expand_dims(signal, axis=2)
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
