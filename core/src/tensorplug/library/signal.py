"""Signals: windows, frames and short-time Fourier transforms, as TensorFlow.js has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import arguments, as_tensor, host_values, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, Operand

__all__ = [
    "cosine_window",
    "enclosing_power_of_two",
    "frame",
    "hamming_window",
    "hann_window",
    "istft",
    "stft",
]

_LEAST_WEIGHT = 1e-10  # of a sample, beside the largest, that can be restored


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
    result_dtype = dt.default_float if dtype is None else dt.of(dtype, caller)
    if result_dtype not in dt.FLOATING:
        raise DTypeError(f"{caller}: dtype must be floating, got {result_dtype}")
    first, second = arguments.real(a, f"{caller}: a"), arguments.real(b, f"{caller}: b")
    with host_values.room_for((length,), caller):
        return as_tensor(_list_weights(length, first, second), result_dtype)


def _list_weights(length: int, a: float, b: float) -> NDArray[np.float64]:
    """Return the elements of a window; see ``cosine_window``."""
    if length == 1:
        return np.ones(1)
    turns = np.arange(length) / (length - length % 2)
    return np.asarray(a - b * np.cos(2 * np.pi * turns))


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
            f"enclosing_power_of_two: value must be a number above 0, "
            f"got {arguments.quoted(value)}"
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
        tensor = tp.pad(tensor, [(0, 0)] * (tensor.ndim - 1) + [(0, missing)], pad_value)
    positions = np.arange(count)[:, None] * step + np.arange(length)
    return tp.gather(tensor, as_tensor(positions, dt.int32), axis=-1)


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
        tensor = tp.astype(tensor, dt.default_float)
    length = _read_positive(frame_length, "stft: frame_length")
    frames = frame(tensor, length, frame_step)
    own = _own(window_fn)
    if own is not None and tensor.dtype in dt.FLOATING:
        frames = frames * own(length, dtype=tensor.dtype)
    elif window_fn is not None:
        frames = frames * window_fn(length)
    points = enclosing_power_of_two(length) if fft_length is None else fft_length
    return tp.fft.rfft(frames, n=points)


_WEIGHTS: Final = {"hann_window": (0.5, 0.5), "hamming_window": (0.54, 0.46)}


def _own(window_fn: Any) -> Any:
    """Return a function if it is a window of this module, whose values the host knows, or None.

    Public functions are wrappers of those of this module.
    """
    known = getattr(window_fn, "__module__", "") == __name__ and window_fn.__name__ in _WEIGHTS
    return window_fn if known else None


def istft(
    stfts: ArrayLike,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[[int], Operand] | None = hann_window,
) -> Tensor:
    """Return the signal whose short-time Fourier transforms these are: the inverse of ``stft``.

    Of spectra that no signal has, it is the signal with the nearest ones, in the sense of least
    squares: ``sum(window * frame) / sum(window**2)`` over all frames that hold a sample. Samples
    that have weight 0 in all frames are lost, and are 0 here: with ``hann_window`` the first one.
    Near both ends rounding errors grow. Pad the signal by a frame before ``stft`` if its ends
    matter.

    Args:
        stfts: [..., frames, fft_length // 2 + 1], complex; real numbers are converted.
        frame_length: as for ``stft``.
        frame_step: as for ``stft``, but at most ``frame_length``.
        fft_length: as for ``stft``.
        window_fn: as for ``stft``: the window by which the frames were multiplied.

    Returns:
        [..., (frames - 1) * frame_step + frame_length], real.

    Raises:
        ShapeError: the rank is below 2, or the last axis or the window has another length.
        ArgumentError: a length or step is below 1; or frames overlap so little that samples are
            lost between them. (A window that ``window_fn`` returns as a tensor is not read to
            find out.)
        DTypeError: strings, or a complex window.

    Source: Griffin and Lim, Signal estimation from modified short-time Fourier transform (1984).

    Examples:
        >>> x = tp.sin(tp.arange(64) / 3)
        >>> spectra = tp.signal.stft(x, 16, 4)
        >>> back = tp.signal.istft(spectra, 16, 4)
        >>> back.shape
        (64,)
        >>> bool(tp.allclose(back[4:-4], x[4:-4], atol=1e-5))
        True

    """
    tensor = as_tensor(stfts, what="istft: stfts")
    length = _read_positive(frame_length, "istft: frame_length")
    step = _read_positive(frame_step, "istft: frame_step")
    points = enclosing_power_of_two(length)
    if fft_length is not None:
        points = _read_positive(fft_length, "istft: fft_length")
    if tensor.ndim < 2 or tensor.shape[-1] != points // 2 + 1:
        raise ShapeError(
            f"istft: stfts must have the shape [..., frames, {points // 2 + 1}] for an fft_length "
            f"of {points}, got {tensor.type}"
        )
    seen = min(length, points)  # stft cuts longer frames
    window = _read_window(window_fn, length)
    _check_overlap(window, seen, step)
    *batch, count, _ = tensor.shape
    dtype = dt.real_part(dt.inexact(tensor.dtype))
    if not count:
        return tp.zeros((*batch, 0), dtype=dtype)
    frames = _resize_last(_resize_last(tp.fft.irfft(tensor, n=points), seen), length)
    weights = _resize_last(_resize_last(as_tensor(window, frames.dtype), seen), length)
    added = _add_overlapping(frames * weights, step)
    weight = _add_overlapping(tp.broadcast_to(weights * weights, (count, length)), step)
    # Below that, nothing but rounding errors is left of a sample.
    lost = tp.less_equal(weight, tp.max(weight) * frames.dtype.eps**2)
    return tp.where(lost, 0, added / tp.where(lost, 1, weight))


def _read_window(window_fn: Callable[[int], Operand] | None, length: int) -> NDArray[Any] | Tensor:
    """Return the window, on the host if it is known there."""
    if window_fn is None:
        return np.ones(length)
    own = _own(window_fn)
    if own is not None:
        return _list_weights(length, *_WEIGHTS[own.__name__])
    made = window_fn(length)
    window = kinds.floating(made, "istft: the window")
    if window.shape != (length,):
        raise ShapeError(f"istft: the window must be a vector of {length}, got {window.type}")
    return window if hasattr(made, "_placement") else np.asarray(made)


def _check_overlap(window: Any, seen: int, step: int) -> None:
    """Refuse frames that leave out samples between the first and the last frame."""
    least = seen - step
    if least >= 0 and isinstance(window, np.ndarray):
        periods = np.zeros(-(-seen // step) * step)
        periods[:seen] = window[:seen].astype(np.float64) ** 2
        sums = periods.reshape(-1, step).sum(axis=0)
        least = -1 if sums.min() <= _LEAST_WEIGHT * sums.max() else 0
    if least < 0:
        raise ArgumentError(
            f"istft: frames of length {seen} in steps of {step} with this window lose samples "
            "between them; stft needs a smaller frame_step"
        )


def _add_overlapping(frames: Tensor, step: int) -> Tensor:
    """Return the sum of frames [..., count, length], each placed ``step`` after the one before."""
    *batch, count, length = frames.shape
    parts = -(-length // step)
    pieces = tp.reshape(_resize_last(frames, parts * step), (*batch, count, parts, step))
    at = len(batch)
    turned = tp.permute_dims(pieces, (*range(at), at + 1, at, at + 2))
    # Row f of part j belongs at f + j. Rows that are one longer than those they are cut into
    # move each part by one more than the part before.
    nothing = [(0, 0)] * (at + 1)
    longer = tp.pad(turned, [*nothing, (0, parts), (0, 0)])
    rows = count + parts - 1
    flat = tp.reshape(longer, (*batch, parts * (rows + 1) * step))
    moved = tp.reshape(_resize_last(flat, parts * rows * step), (*batch, parts, rows, step))
    added = tp.reshape(tp.sum(moved, axis=-3), (*batch, rows * step))
    return _resize_last(added, (count - 1) * step + length)


def _resize_last(x: Tensor, length: int) -> Tensor:
    """Return ``x`` with its last axis cut or zero-padded to ``length``."""
    missing = length - x.shape[-1]
    if missing > 0:
        return tp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return x[..., :length] if missing else x
