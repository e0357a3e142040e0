"""tp.signal: windows, frames and short-time Fourier transforms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.core.support.refusals import refused
from tests.core.support.samples import real

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

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


def hann(length):
    n = length - length % 2
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / n)


def restored(spectra, length, step, points, window):
    """Return the least squares solution, frame by frame and sample by sample."""
    count = spectra.shape[-2]
    added = np.zeros((*spectra.shape[:-2], (count - 1) * step + length))
    weight = np.zeros(added.shape[-1])
    for at in range(count):
        frame = np.fft.irfft(spectra[..., at, :], points)
        for k in range(min(length, points)):
            added[..., at * step + k] += frame[..., k] * window[k]
            weight[at * step + k] += window[k] ** 2
    return np.divide(added, weight, out=np.zeros_like(added), where=weight > 0)


INVERTED = [  # length, step, points, what makes the window, the window
    (16, 4, None, S.hann_window, hann(16)),
    (9, 2, None, S.hann_window, hann(9)),
    (16, 5, 20, S.hamming_window, None),
    (16, 16, None, None, np.ones(16)),
    (12, 3, 8, S.hann_window, hann(12)),  # frames are cut
    (7, 1, None, lambda n: np.arange(1, n + 1), np.arange(1, 8)),
    (7, 3, 7, lambda n: tp.arange(1, n + 1), np.arange(1, 8)),
    (4, 2, 4, lambda _n: np.array([1, 2, 2, 1]), np.array([1, 2, 2, 1])),
]


@pytest.mark.parametrize(("length", "step", "points", "make", "window"), INVERTED)
def test_inverses(length, step, points, make, window):
    given = (length, step, points, make)
    window = 0.54 + 0.92 * (hann(length) - 0.5) if window is None else window
    size = points or 1 << (length - 1).bit_length()
    spectra = real(2, 5, size // 2 + 1) + 1j * real(2, 5, size // 2 + 1, salt=1)
    wanted = restored(spectra, *given[:2], size, window)
    found = S.istft(spectra, *given)
    assert (found.dtype, found.shape) == (tp.float64, wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-9)
    signal = real(2, 40)
    back = S.istft(S.stft(signal, *given), *given).numpy()
    some = restored(
        np.ones((2, (40 - length) // step + 1, size // 2 + 1)), length, step, size, window
    )
    assert back.shape == some.shape
    lost = back == 0
    assert np.count_nonzero(lost[0]) <= length - min(length, size) + 2 * (make is S.hann_window)
    np.testing.assert_allclose(back[~lost], signal[:, : back.shape[1]][~lost], rtol=0, atol=1e-12)


REFUSED = {  # error: call, what the message says
    ArgumentError: [
        (lambda: S.cosine_window(0, 1, 1), "cosine_window: window_length must be "),
        (lambda: S.hann_window(0), "hann_window: window_length must be at least 1"),
        (lambda: S.enclosing_power_of_two(0), "must be a number above 0, got 0"),
        (lambda: S.enclosing_power_of_two(math.nan), "must be a number above 0"),
        (lambda: S.frame([1.0], 0, 1), "frame_length must be at least 1, got 0"),
        (lambda: S.frame([1.0], 1, 0), "frame_step must be at least 1, got 0"),
        (lambda: S.istft(np.ones((2, 3)), 4, 0), "frame_step must be at least 1"),
        (lambda: S.istft(np.ones((2, 3)), 4, 2, 0), "fft_length must be at least"),
        (
            lambda: S.istft(np.ones((2, 3)), 4, 5, window_fn=tp.ones),
            "istft: frames of length 4 in steps of 5 with this window lose samples between them",
        ),
        (
            lambda: S.istft(np.ones((2, 3)), 4, 4),  # a Hann window begins with 0
            "istft: frames of length 4 in steps of 4 with this window lose samples between them",
        ),
    ],
    DTypeError: [
        (lambda: S.hamming_window(4, dtype="int32"), "hamming_window: dtype must be "),
        (lambda: S.stft([1j], 1, 1), "RFFT(input=complex64"),
        (
            lambda: S.istft(np.ones((2, 3)), 4, 2, window_fn=lambda _n: np.ones(4) * 1j),
            "istft: the window must hold real numbers, got complex128[4]",
        ),
    ],
    ShapeError: [
        (lambda: S.frame(1.0, 1, 1), "signal must have at least rank 1"),
        (
            lambda: S.istft(np.ones((2, 4)), 4, 2),
            "istft: stfts must have the shape [..., frames, 3] for an fft_length of 4, got fl",
        ),
        (lambda: S.istft(np.ones(3), 4, 2), "[..., frames, 3] for an fft_length of 4"),
        (
            lambda: S.istft(np.ones((2, 3)), 4, 2, window_fn=lambda _n: [1.0, 2.0]),
            "istft: the window must be a vector of 4, got float32[2]",
        ),
    ],
}

test_refusals = refused(REFUSED)
