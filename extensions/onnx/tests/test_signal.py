"""Fourier transforms, with and without complex numbers; windows and mel filters."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug_onnx import NodeError
from tensorplug_onnx.operators import signal

from .one_operator import outputs_of

RNG = np.random.default_rng(5)


def length(number):
    return None if number is None else np.array(number, np.int64)


def signals(parts, dtype=np.float32):
    return RNG.uniform(-1, 1, (2, 7, 6, parts)).astype(dtype)


def plain(x):
    """Return the numbers that the last axis stands for, in double precision."""
    x = x.astype(np.float64)
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def parted(x, *, real=False):
    return x.real[..., None] if real else np.stack([x.real, x.imag], axis=-1)


def transformed(x, size, axis, *, inverse, onesided):
    numbers, axis = plain(x), axis % x.ndim
    if inverse and onesided:
        return parted(np.fft.irfft(numbers, n=size, axis=axis), real=True)
    found = (np.fft.ifft if inverse else np.fft.fft)(numbers, n=size, axis=axis)
    if onesided:
        found = np.take(found, range(found.shape[axis] // 2 + 1), axis=axis)
    return parted(found)


@pytest.fixture(params=["complex", "real"])
def arithmetic(request, monkeypatch):
    """Let the device have complex numbers, or not."""
    if request.param == "real":
        monkeypatch.setattr(signal, "has_dtype", lambda name: not name.startswith("complex"))


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("size", [None, 5, 6, 9, 1])
@pytest.mark.parametrize("axis", [1, -2])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize(("inverse", "parts"), [(0, 1), (0, 2), (1, 2), (1, 1)])
def test_dft(inverse, parts, onesided, axis, size):
    x = signals(parts)
    attributes = {"inverse": inverse, "onesided": onesided}
    expected = transformed(x, size, axis, inverse=inverse, onesided=onesided)
    asked = [
        ([x, length(size), length(axis)], attributes, 20),
        ([x, length(size)], {**attributes, "axis": axis}, 17),
    ]
    for inputs, given, opset in asked:
        (found,) = outputs_of("compiled", "DFT", inputs, given, opset=opset)
        assert found.dtype == np.float32
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=3e-6)


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-13), (np.float16, 3e-3)])
def test_dft_keeps_the_dtype(dtype, error):
    x = signals(2, dtype)
    (found,) = outputs_of("called", "DFT", [x], {}, opset=20)
    expected = transformed(x, None, 2, inverse=False, onesided=False)
    assert found.dtype == dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=error)


# Window, length of a frame, and the numbers of a sample.
FRAMES = [(None, 4, 1), ("window", None, 1), ("window", 5, 2), (None, None, 1), (None, 4, 2)]


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize(("window", "size", "parts"), FRAMES)
def test_stft(window, size, parts, onesided):
    x, step = signals(parts)[:, :, 0], 2
    weights = RNG.uniform(0, 1, 5).astype(np.float32) if window else None
    inputs = [x, length(step), weights, length(size)]
    (found,) = outputs_of("compiled", "STFT", inputs, {"onesided": onesided})
    wide = size or (5 if window else 7)
    starts = range(0, 7 - wide + 1, step)
    by = np.ones(wide) if weights is None else weights
    frames = np.stack([plain(x)[:, at : at + wide] * by for at in starts], axis=1)
    expected = np.fft.fft(frames)[..., : wide // 2 + 1 if onesided else wide]
    assert found.dtype == np.float32
    assert found.shape == (*expected.shape, 2)
    np.testing.assert_allclose(found, parted(expected), atol=3e-6)


def test_stft_of_a_signal_without_the_last_axis():
    """PyTorch's exporters leave it out, and onnxruntime takes such signals, too."""
    x = signals(1)[:, :, 0]
    (whole,) = outputs_of("compiled", "STFT", [x, length(2), None, length(4)])
    (found,) = outputs_of("compiled", "STFT", [x[:, :, 0], length(2), None, length(4)])
    assert found.shape == whole.shape
    np.testing.assert_array_equal(found, whole)


# The window's formula for n of N.
WINDOWS = {
    "HannWindow": lambda turn: 0.5 - 0.5 * np.cos(turn),
    "HammingWindow": lambda turn: 25 / 46 - 21 / 46 * np.cos(turn),
    "BlackmanWindow": lambda turn: 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn),
}


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name, periodic):
    (found,) = outputs_of("constant", name, [length(9)], {"periodic": periodic}, opset=17)
    turns = 2 * np.pi * np.arange(9) / (9 if periodic else 8)
    assert found.dtype == np.float32
    assert found.shape == (9,)
    np.testing.assert_allclose(found, WINDOWS[name](turns), atol=1e-6)


def test_mel_filters_are_triangles():
    numbers = [length(8), length(64), length(8192)]
    edges = [np.array(edge, np.float32) for edge in (0, 4096)]
    (found,) = outputs_of("called", "MelWeightMatrix", [*numbers, *edges])
    assert found.dtype == np.float32
    assert found.shape == (33, 8)
    corners = [2595 * np.log10(1 + 4096 / 700) * at / 10 for at in range(10)]
    places = [int(65 * 700 * (10 ** (corner / 2595) - 1) / 8192) for corner in corners]
    for column in range(8):
        left, centre, right = places[column : column + 3]
        expected = np.interp(np.arange(33), [left, centre, right], [0.0, 1.0, 0.0])
        np.testing.assert_allclose(found[:, column], expected, atol=1e-6)


X = signals(1)

# What must not run, by name: operator, inputs, what the message says.
WRONG = {
    "the axis of the parts": ("DFT", [X, None, length(-1)], "axis -1"),
    "an axis": ("DFT", [X, None, length(4)], "axis 4"),
    "three parts": ("DFT", [np.ones((1, 4, 3), np.float32)], "length 1 or 2"),
    "a window": ("STFT", [X[:, :, 0], length(1), np.ones(4, np.float32), length(5)], "window"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_node(name):
    operator, inputs, message = WRONG[name]
    with pytest.raises(NodeError, match=rf"{operator}.*{message}"):
        outputs_of("called", operator, inputs)
