"""Fourier transforms along several axes, dtypes, frequencies, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused
from tests.core.support.samples import real

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def wave(*shape):
    return real(*shape) + 1j * real(*shape, salt=1)


def defined(x, n, axis, sign, factor):
    """Return the transform along one axis, cut or filled up to n points, by its sum."""
    moved = np.moveaxis(x, axis, -1)
    n = moved.shape[-1] if n is None else n
    sized = np.zeros((*moved.shape[:-1], n), complex)
    kept = min(n, moved.shape[-1])
    sized[..., :kept] = moved[..., :kept]
    k = np.arange(n)
    waves = np.exp(sign * 2j * np.pi * np.outer(k, k) / n)
    return np.moveaxis(sized @ waves * factor(n), -1, axis)


FORWARD = {"backward": lambda _n: 1, "ortho": lambda n: n**-0.5, "forward": lambda n: 1 / n}


def halved(full, axis=-1):
    return np.take(full, range(full.shape[axis] // 2 + 1), axis=axis)


def close(got, expected, dtype):
    assert (got.dtype, got.shape) == (dtype, expected.shape)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_along_several_axes():
    z, x = wave(2, 3, 4), real(2, 3, 4)
    both = defined(defined(z, 5, 1, -1, FORWARD["ortho"]), 3, 2, -1, FORWARD["ortho"])
    close(tp.fft.fftn(z, s=(5, 3), axes=(1, 2), norm="ortho"), both, tp.complex128)
    close(tp.fft.fftn(z, s=(5, 3), norm="ortho"), both, tp.complex128)
    kept = defined(defined(z, 5, 1, -1, FORWARD["ortho"]), None, 2, -1, FORWARD["ortho"])
    close(tp.fft.fftn(z, s=(5, -1), axes=(1, 2), norm="ortho"), kept, tp.complex128)
    close(tp.fft.ifftn(tp.fft.fftn(z)), z, tp.complex128)
    close(tp.fft.irfftn(tp.fft.rfftn(x)), x, tp.float64)
    half = halved(defined(x, None, 0, -1, FORWARD["backward"]), 0)
    close(
        tp.fft.rfftn(x, axes=(2, 0)),
        defined(half, None, 2, -1, FORWARD["backward"]),
        tp.complex128,
    )


@pytest.mark.parametrize(
    ("function", "given", "wanted"),
    [
        ("fft", "float32", "complex64"),
        ("fft2", "int32", "complex64"),
        ("irfft2", "bfloat16", "float32"),
        ("fft", "float64", "complex128"),
        ("fft", "int32", "complex64"),
        ("fft", "complex64", "complex64"),
        ("rfft", "float16", "complex64"),
        ("rfft", "bool", "complex64"),
        ("irfft", "complex64", "float32"),
        ("irfft", "float64", "float64"),
        ("hfft", "complex128", "float64"),
    ],
)
def test_dtypes(function, given, wanted):
    shape = (4, 4) if function.endswith("2") else (4,)
    assert getattr(tp.fft, function)(tp.ones(shape, dtype=given)).dtype.name == wanted


def test_frequencies_and_shifts():
    assert tp.fft.fftfreq(5, d=0.5).tolist() == pytest.approx([0, 0.4, 0.8, -0.8, -0.4])
    assert tp.fft.fftfreq(4).tolist() == [0, 0.25, -0.5, -0.25]
    assert tp.fft.rfftfreq(5, dtype="float64").tolist() == [0, 0.2, 0.4]
    for n in (4, 5):
        x = tp.arange(n) - n // 2
        assert tp.fft.ifftshift(x).tolist()[0] == 0
        assert tp.fft.fftshift(tp.fft.ifftshift(x)).tolist() == x.tolist()
    assert tp.fft.fftshift([[0, 1], [2, 3]]).tolist() == [[3, 2], [1, 0]]
    assert tp.fft.fftshift([[0, 1], [2, 3]], axes=1).tolist() == [[1, 0], [3, 2]]


REFUSED = {  # error: call, what the message says
    ArgumentError: [
        (lambda: tp.fft.fft([1.0], norm="none"), "norm must be one of 'backward'"),
        (
            lambda: tp.fft.irfft2(np.ones((2, 2)), axes=(1,)),
            "irfft2: axes must be two axes, got [1]; irfftn takes any number",
        ),
        (
            lambda: tp.fft.rfft2(np.ones((2, 2), np.float32), s=(3,)),
            "rfft2 of float32[2,2]: s has 1 lengths, but axes has 2 entries",
        ),
        (lambda: tp.fft.fft([1.0], n=0), "n must be at least 1, got 0"),
        (lambda: tp.fft.fftn(wave(2, 2), s=(1, 2), axes=(0,)), "s has 2 lengths"),
        (lambda: tp.fft.fftn(wave(2), s=(1, 2)), "x has 1 axes"),
        (lambda: tp.fft.fftfreq(0), "n must be at least 1, got 0"),
    ],
    ShapeError: [
        (lambda: tp.fft.fft2([1.0]), "fft2 of float32[1]: axes -2 is out of range for rank 1"),
        (lambda: tp.fft.fft([1.0], axis=1), "axis 1 is out of range for rank 1"),
        (lambda: tp.fft.fft(1.0), "out of range for rank 0"),
        (lambda: tp.fft.fft(np.ones((2, 0))), "the last axis must not be empty"),
        (lambda: tp.fft.irfft([1.0]), "must be at least 1, got 0"),
    ],
    DTypeError: [
        (lambda: tp.fft.rfft2([[1j]]), "RFFT(input=complex64"),
        (lambda: tp.fft.fft(["a"]), "fft: x must hold numbers, got string[1]"),
        (lambda: tp.fft.rfft([1j]), "RFFT(input=complex64[1])"),
        (lambda: tp.fft.fftfreq(4, dtype="int32"), "dtype must be floating"),
    ],
}

test_refusals = refused(REFUSED)
