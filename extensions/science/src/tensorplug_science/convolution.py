"""The convolution of two sequences, for all numeric dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

import tensorplug as tp
from tensorplug.errors import ShapeError
from tensorplug.plugin import arguments, kinds
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["convolve"]

_TAPS: Final = 64  # at a time, for integers; more need more memory


def convolve(
    a: ArrayLike, v: ArrayLike, /, mode: Literal["full", "same", "valid"] = "full"
) -> Tensor:
    """Return the discrete convolution of two sequences: ``out[i] = sum(a[k] * v[i - k])``.

    Args:
        a: numbers or booleans of rank 1 (a single number is a sequence of one), n of them.
        v: likewise, m of them; the dtypes are promoted.
        mode: "full" returns all n + m - 1 sums, "same" the middle max(n, m) of them, "valid"
            the max(n, m) - min(n, m) + 1 sums in which the shorter sequence lies within the
            longer one.

    Returns:
        A tensor of rank 1. For booleans it tells whether any product is true.

    Raises:
        ShapeError: an operand has another rank, or no elements.
        ArgumentError: an unknown mode.
        DTypeError: strings, or dtypes that cannot be promoted.

    Source: NumPy's convolve.

    Examples:
        >>> tp.convolve([1, 2, 3], [0, 1])
        Tensor([0, 1, 2, 3], dtype=int32, device='cpu')
        >>> tp.convolve([1, 2, 3, 4], [0.5, 0.5], mode="valid")  # means of neighbours
        Tensor([1.5, 2.5, 3.5], dtype=float32, device='cpu')
        >>> tp.convolve([1, 2, 3], [1, 1, 1], mode="same")
        Tensor([3, 6, 5], dtype=int32, device='cpu')

    """
    arguments.choice(mode, ("full", "same", "valid"), "convolve: mode")
    signal, taps = _read_sequence(a, "a"), _read_sequence(v, "v")
    dtype = dt.promote((signal.dtype, taps.dtype))
    signal, taps = tp.astype(signal, dtype), tp.astype(taps, dtype)
    if taps.size > signal.size:
        signal, taps = taps, signal
    m = taps.size
    padding = {"full": (m - 1, m - 1), "same": (m // 2, (m - 1) // 2), "valid": (0, 0)}[mode]
    backwards = tp.flip(taps)
    if dtype in dt.FLOATING:
        return _correlate(tp.reshape(signal, (-1, 1)), tp.reshape(backwards, (m, 1, 1)), padding)[
            0
        ]
    if dtype in dt.COMPLEX:
        return _correlate_complex(signal, backwards, padding)
    if dtype is dt.bool_:
        counts = _correlate_integers(
            tp.astype(signal, dt.int32), tp.astype(backwards, dt.int32), padding
        )
        return tp.astype(counts, dt.bool_)
    return _correlate_integers(signal, backwards, padding)


def _read_sequence(value: Any, name: str) -> Tensor:
    tensor: Tensor = tp.atleast_1d(kinds.numbers(value, f"convolve: {name}"))
    if tensor.ndim != 1 or not tensor.size:
        raise ShapeError(
            f"convolve: {name} must have rank 1 and at least one element, got {tensor.type}"
        )
    return tensor


def _correlate(signal: Tensor, filter: Tensor, padding: tuple[int, int]) -> list[Tensor]:
    """Return the sequences that a filter [taps, in, out] gives for a signal [n, in]."""
    found = tp.nn.conv1d(
        tp.reshape(signal, (1, *signal.shape)), filter, 1, [(0, 0), padding, (0, 0)]
    )
    _, length, channels = found.shape
    sequences = [tp.slice(found, (0, 0, channel), (1, length, 1)) for channel in range(channels)]
    return [tp.reshape(sequence, (length,)) for sequence in sequences]


def _correlate_complex(signal: Tensor, taps: Tensor, padding: tuple[int, int]) -> Tensor:
    """Correlate the real and the imaginary part, as two channels, at once."""
    parts = tp.stack([tp.real(signal), tp.imag(signal)], axis=1)
    to_real = tp.stack([tp.real(taps), -tp.imag(taps)], axis=1)
    to_imaginary = tp.stack([tp.imag(taps), tp.real(taps)], axis=1)
    return tp.complex(*_correlate(parts, tp.stack([to_real, to_imaginary], axis=2), padding))


def _correlate_integers(signal: Tensor, taps: Tensor, padding: tuple[int, int]) -> Tensor:
    """Multiply pieces of the signal by the taps; sums of integers are exact."""
    padded = tp.pad(signal, [padding])
    length = padded.size - taps.size + 1
    total = None
    for first in range(0, taps.size, _TAPS):
        count = min(_TAPS, taps.size - first)
        places = np.arange(length, dtype=np.int32)[:, None] + np.arange(
            first, first + count, dtype=np.int32
        )
        part = tp.matmul(tp.gather(padded, places), tp.slice(taps, (first,), (count,)))
        total = part if total is None else total + part
    assert total is not None  # there is at least one tap
    return total
