"""Signals: windows, frames and short-time Fourier transforms, as TensorFlow.js has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import quoted, real
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.elementwise import astype
from tensorplug.ops.fft.spectral import rfft
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import pad

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, Operand

__all__ = [
    "cosine_window",
    "enclosing_power_of_two",
    "frame",
    "hamming_window",
    "hann_window",
    "stft",
]


def _read_positive(value: Any, what: str) -> int:
    number = shapes.index(value, what)
    if number < 1:
        raise ArgumentError(f"{what} must be at least 1, got {number}")
    return number


def cosine_window(
    window_length: int, a: float, b: float, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Return ``a - b * cos(2 pi k / n)`` for k below ``window_length``, float32 by default.

    n is the length if it is even (a periodic window), and one less if it is odd (a symmetric
    window), as in TensorFlow. A window of length 1 is ``[1]``.

    Raises:
        ArgumentError: the length is below 1.
        DTypeError: the dtype is not floating.

    Examples:
        >>> tp.signal.cosine_window(4, 0.5, 0.25)  # periodic
        Tensor([0.25, 0.5 , 0.75, 0.5 ], dtype=float32, device='cpu')
        >>> tp.signal.cosine_window(5, 0.5, 0.25)  # symmetric
        Tensor([0.25, 0.5 , 0.75, 0.5 , 0.25], dtype=float32, device='cpu')

    """
    return _make_window(window_length, a, b, dtype, "cosine_window")


def hann_window(window_length: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return a Hann window: ``0.5 - 0.5 * cos(2 pi k / n)``; see ``cosine_window``.

    ``window_length``: the number of points.

    Raises:
        ArgumentError: the length is below 1.
        DTypeError: the dtype is not floating.

    Source: TensorFlow.js's signal.hannWindow.

    Examples:
        >>> tp.signal.hann_window(5)
        Tensor([0. , 0.5, 1. , 0.5, 0. ], dtype=float32, device='cpu')

    """
    return _make_window(window_length, 0.5, 0.5, dtype, "hann_window")


def hamming_window(window_length: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return a Hamming window: ``0.54 - 0.46 * cos(2 pi k / n)``; see ``cosine_window``.

    ``window_length``: the number of points.

    Raises:
        ArgumentError: the length is below 1.
        DTypeError: the dtype is not floating.

    Source: TensorFlow.js's signal.hammingWindow.

    Examples:
        >>> tp.signal.hamming_window(5).numpy().round(4)
        array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)

    """
    return _make_window(window_length, 0.54, 0.46, dtype, "hamming_window")


def _make_window(
    window_length: int, a: float, b: float, dtype: DTypeLike | None, caller: str
) -> Tensor:
    length = _read_positive(window_length, f"{caller}: window_length")
    wanted = dt.default_float if dtype is None else dt.of(dtype, caller)
    if wanted not in dt.FLOATING:
        raise DTypeError(f"{caller}: dtype must be floating, got {wanted}")
    if length == 1:
        return as_tensor(np.ones(1), wanted)
    first, second = real(a, f"{caller}: a"), real(b, f"{caller}: b")
    with host_values.room_for((length,), caller):
        turns = np.arange(length) / (length - length % 2)
        return as_tensor(first - second * np.cos(2 * np.pi * turns), wanted)


def enclosing_power_of_two(value: float) -> int:
    """Return the smallest power of two that is at least 1 and at least ``value``.

    It is a length for which Fourier transforms are fast. (TensorFlow.js's enclosingPowerOfTwo.)

    Raises:
        ArgumentError: ``value`` is not a number above 0.

    Examples:
        >>> tp.signal.enclosing_power_of_two(100)
        128
        >>> tp.signal.enclosing_power_of_two(64)
        64

    """
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise ArgumentError(
            f"enclosing_power_of_two: value must be a number above 0, got {quoted(value)}"
        )
    return 1 << (math.ceil(value) - 1).bit_length()


def frame(
    signal: ArrayLike,
    frame_length: int,
    frame_step: int,
    *,
    pad_end: bool = False,
    pad_value: dt.Scalar = 0,
) -> Tensor:
    """Return overlapping pieces of a signal.

    ``out[..., i, j] = signal[..., i * frame_step + j]``, shape [..., frames, frame_length].

    Args:
        signal: [..., n], of any numbers. (tfjs takes one dimension.)
        frame_length: number of elements of a frame.
        frame_step: number of elements from the start of a frame to that of the next.
        pad_end: whether frames begin at every step below n, padded with ``pad_value``. By
            default only whole frames are taken.
        pad_value: for ``pad_end``.

    Raises:
        ShapeError: ``signal`` is a scalar.
        ArgumentError: a length or step is below 1.

    Source: TensorFlow.js's signal.frame.

    Examples:
        >>> tp.signal.frame([1, 2, 3, 4, 5], 3, 2)
        Tensor([[1, 2, 3],
                [3, 4, 5]], dtype=int32, device='cpu')
        >>> tp.signal.frame([1, 2, 3, 4], 3, 2, pad_end=True)
        Tensor([[1, 2, 3],
                [3, 4, 0]], dtype=int32, device='cpu')

    """
    tensor = as_tensor(signal, what="frame: signal")
    if not tensor.ndim:
        raise ShapeError("frame: signal must have at least rank 1, got a scalar")
    length = _read_positive(frame_length, "frame: frame_length")
    step = _read_positive(frame_step, "frame: frame_step")
    n = tensor.shape[-1]
    count = -(-n // step) if pad_end else max(0, (n - length) // step + 1)
    missing = (count - 1) * step + length - n
    if pad_end and missing > 0:
        tensor = pad(tensor, [(0, 0)] * (tensor.ndim - 1) + [(0, missing)], pad_value)
    places = np.arange(count)[:, None] * step + np.arange(length)
    return gather(tensor, as_tensor(places, dt.int32), axis=-1)


def stft(
    signal: ArrayLike,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[[int], Operand] | None = hann_window,
) -> Tensor:
    """Return short-time Fourier transforms: ``rfft(frame(signal) * window)``.

    Args:
        signal: [..., n], real; integers become float32.
        frame_length: number of elements of a frame; only whole frames are taken.
        frame_step: number of elements from the start of a frame to that of the next.
        fft_length: length to which frames are cut or zero-padded; by default the enclosing
            power of two of ``frame_length``.
        window_fn: takes a length and returns a window; None for no window.

    Returns:
        [..., frames, fft_length // 2 + 1], complex.

    Raises:
        ShapeError: ``signal`` is a scalar.
        ArgumentError: a length or step is below 1.
        DTypeError: ``signal`` is complex.

    Source: TensorFlow.js's signal.stft.

    Examples:
        >>> t = tp.arange(64) / 64  # one second at 64 Hz
        >>> spectra = tp.signal.stft(tp.sin(2 * tp.pi * 8 * t), 32, 16)
        >>> spectra.shape  # frames, frequencies in steps of 64 / 32 Hz
        (3, 17)
        >>> tp.argmax(tp.abs(spectra), axis=-1) * 2  # the loudest one in Hz
        Tensor([8, 8, 8], dtype=int32, device='cpu')

    """
    tensor = as_tensor(signal, what="stft: signal")
    if tensor.dtype not in dt.FLOATING | dt.COMPLEX:
        tensor = astype(tensor, dt.default_float)
    length = _read_positive(frame_length, "stft: frame_length")
    frames = frame(tensor, length, frame_step)
    if window_fn in (hann_window, hamming_window) and tensor.dtype in dt.FLOATING:
        frames = frames * window_fn(length, dtype=tensor.dtype)
    elif window_fn is not None:
        frames = frames * window_fn(length)
    points = enclosing_power_of_two(length) if fft_length is None else fft_length
    return rfft(frames, n=points)
