"""tp.signal: windows, frames and short-time Fourier transforms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

from .samples import real

S = tp.signal


pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize("length", [1, 2, 3, 8, 9])
def test_windows(length):
    n = length if length % 2 == 0 else length - 1  # as in TensorFlow
    for make, a, b in ((S.hann_window, 0.5, 0.5), (S.hamming_window, 0.54, 0.46)):
        wanted = [a - b * math.cos(2 * math.pi * k / n) if n else 1.0 for k in range(length)]
        assert make(length).dtype is tp.float32
        assert make(length, dtype="float64").tolist() == pytest.approx(wanted, abs=1e-15)
        assert S.cosine_window(length, a, b).tolist() == pytest.approx(wanted, abs=1e-7)


def test_powers_of_two():
    values = {1: 1, 2: 2, 3: 4, 8: 8, 9: 16, 0.3: 1, 5.5: 8, 2**53: 2**53, 2**53 + 1: 2**54}
    assert {value: S.enclosing_power_of_two(value) for value in values} == values


@pytest.mark.parametrize(("length", "step"), [(2, 2), (3, 1), (2, 3), (7, 1), (5, 5)])
@pytest.mark.parametrize("pad_end", [False, True])
def test_frames(length, step, pad_end):
    x = np.arange(1, 6)
    starts = range(0, 5, step) if pad_end else range(0, 6 - length, step)
    wanted = [[int(x[at + k]) if at + k < 5 else 9 for k in range(length)] for at in starts]
    got = S.frame(x, length, step, pad_end=pad_end, pad_value=9)
    assert got.shape == (len(wanted), length)
    assert got.tolist() == wanted
    assert S.frame(np.stack([x, x]), length, step).shape[0] == 2


@pytest.mark.parametrize("points", [None, 8, 20])
def test_short_time_transforms(points):
    x = real(2, 30)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(10) / 10)
    frames = np.stack([x[:, at : at + 10] * window for at in range(0, 21, 4)], axis=1)
    wanted = np.fft.rfft(frames, points or 16)
    got = S.stft(x, 10, 4, points)
    assert (got.dtype, got.shape) == (tp.complex128, wanted.shape)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-12)
    plain = S.stft(x.astype("float32"), 10, 4, window_fn=None)
    assert plain.dtype is tp.complex64
    ones = S.stft(x.astype("float32"), 10, 4, window_fn=lambda n: np.ones(n, np.float32))
    assert ones.tolist() == plain.tolist()


def test_gradients():
    check_grads(lambda x: S.frame(x, 3, 2, pad_end=True) ** 2, [real(8)], order=2)
    check_grads(lambda x: tp.abs(S.stft(x, 4, 2)) ** 2, [real(12)], order=2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: S.cosine_window(0, 1, 1), ArgumentError, "cosine_window: window_length must be "),
        (lambda: S.hann_window(0), ArgumentError, "hann_window: window_length must be at least 1"),
        (lambda: S.hamming_window(4, dtype="int32"), DTypeError, "hamming_window: dtype must be "),
        (lambda: S.enclosing_power_of_two(0), ArgumentError, "must be a number above 0, got 0"),
        (lambda: S.enclosing_power_of_two(math.nan), ArgumentError, "must be a number above 0"),
        (lambda: S.frame(1.0, 1, 1), ShapeError, "signal must have at least rank 1"),
        (lambda: S.frame([1.0], 0, 1), ArgumentError, "frame_length must be at least 1, got 0"),
        (lambda: S.frame([1.0], 1, 0), ArgumentError, "frame_step must be at least 1, got 0"),
        (lambda: S.stft([1j], 1, 1), DTypeError, "RFFT(input=complex64"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
