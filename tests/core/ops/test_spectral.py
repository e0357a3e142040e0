"""Fourier transforms against their definition, what they refuse, and gradients through them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.core.support.samples import real

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads, isolated_engine
from tensorplug_conformance.primitives import PRIMITIVES

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
INVERSE = {"backward": lambda n: 1 / n, "ortho": lambda n: n**-0.5, "forward": lambda _n: 1}
ARGUMENTS = ({}, {"n": 4}, {"n": 9}, {"axis": 0}, {"norm": "ortho"}, {"norm": "forward", "n": 5})


def halved(full, axis=-1):
    return np.take(full, range(full.shape[axis] // 2 + 1), axis=axis)


def close(got, expected, dtype):
    assert (got.dtype, got.shape) == (dtype, expected.shape)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("given", ARGUMENTS, ids=str)
def test_along_one_axis(given):
    z, x = wave(3, 6), real(3, 6)
    n, axis, norm = given.get("n"), given.get("axis", -1), given.get("norm", "backward")
    close(tp.fft.fft(z, **given), defined(z, n, axis, -1, FORWARD[norm]), tp.complex128)
    close(tp.fft.ifft(z, **given), defined(z, n, axis, 1, INVERSE[norm]), tp.complex128)
    whole = defined(x, n, axis, -1, FORWARD[norm])
    close(tp.fft.rfft(x, **given), halved(whole, axis), tp.complex128)
    close(
        tp.fft.ihfft(x, **given),
        halved(defined(x, n, axis, 1, INVERSE[norm]), axis),
        tp.complex128,
    )
    # The inverses of the real ones, from the halves of whole spectra.
    points = whole.shape[axis]
    back = {"n": points, "axis": axis, "norm": norm}
    signal = defined(whole, None, axis, 1, INVERSE[norm]).real
    close(tp.fft.irfft(halved(whole, axis), **back), signal, tp.float64)
    mirrored = defined(whole.conj(), None, axis, 1, FORWARD[norm]).real
    close(tp.fft.hfft(halved(whole, axis), **back), mirrored, tp.float64)


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
    "given",
    [{}, {"s": (5, 4)}, {"s": (-1, 6)}, {"axes": (0, 1)}, {"axes": (2, 0), "norm": "ortho"}],
    ids=str,
)
def test_along_two_axes(given):
    z, x = wave(2, 3, 4), real(2, 3, 4)
    first, last = given.get("axes", (-2, -1))
    lengths = [None if n == -1 else n for n in given.get("s", (None, None))]
    norm = given.get("norm", "backward")

    def both(x, sign, factors):
        rows = defined(x, lengths[0], first, sign, factors[norm])
        return defined(rows, lengths[1], last, sign, factors[norm])

    close(tp.fft.fft2(z, **given), both(z, -1, FORWARD), tp.complex128)
    close(tp.fft.ifft2(z, **given), both(z, 1, INVERSE), tp.complex128)
    whole = both(x, -1, FORWARD)
    close(tp.fft.rfft2(x, **given), halved(whole, last), tp.complex128)
    signal = defined(defined(whole, None, first, 1, INVERSE[norm]), None, last, 1, INVERSE[norm])
    back = {**given, "s": (-1, whole.shape[last])}
    close(tp.fft.irfft2(halved(whole, last), **back), signal.real, tp.float64)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_planes_in_gradients_programs_and_batches(name):
    function = getattr(tp.fft, name)
    given = real(2, 3, 4)

    def total(x):
        y = function(x)
        return tp.sum(tp.real(y) ** 2 + 3 * tp.imag(y))

    check_grads(total, [given], order=2)
    eager = function(given)
    for found in (tp.compile(function)(tp.asarray(given)), tp.vmap(function)(tp.asarray(given))):
        close(found, eager.numpy(), eager.dtype)


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


def test_methods_and_kernels_as_tfjs_has_them():
    z = tp.asarray(wave(2, 6))
    expected = np.fft.fft(z.numpy())
    np.testing.assert_allclose(z.fft().numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(
        tp.run_kernel("FFT", {"input": z}, {}).numpy(), expected, rtol=1e-12
    )
    back = tp.run_kernel("IFFT", {"input": z.fft()}, {})
    np.testing.assert_allclose(back.numpy(), z.numpy(), rtol=1e-12)


@pytest.mark.parametrize("n", [60, 64, 2 * 67, 67 * 71, 1024])
def test_decomposed_lengths(n):
    """Radix by radix, primes whole or by a convolution, products of large primes."""
    x = wave(2, n).astype("complex64")
    with isolated_engine("cpu"):
        for name in tp.kernels_for("cpu"):
            if name not in PRIMITIVES:
                tp.unregister_kernel(name, "cpu")
        got = tp.fft.fft(x).numpy()
    expected = np.fft.fft(x.astype("complex128"))
    assert np.max(np.abs(got - expected)) <= 2e-7 * math.log2(n) * np.abs(x).sum(axis=1).max()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tp.fft.fft([1.0], norm="none"), ArgumentError, "norm must be one of 'backward'"),
        (
            lambda: tp.fft.fft2([1.0]),
            ShapeError,
            "fft2 of float32[1]: axes -2 is out of range for rank 1",
        ),
        (
            lambda: tp.fft.irfft2(np.ones((2, 2)), axes=(1,)),
            ArgumentError,
            "irfft2: axes must be two axes, got [1]; irfftn takes any number",
        ),
        (
            lambda: tp.fft.rfft2(np.ones((2, 2), np.float32), s=(3,)),
            ArgumentError,
            "rfft2 of float32[2,2]: s has 1 lengths, but axes has 2 entries",
        ),
        (lambda: tp.fft.rfft2([[1j]]), DTypeError, "RFFT(input=complex64"),
        (lambda: tp.fft.fft([1.0], n=0), ArgumentError, "n must be at least 1, got 0"),
        (lambda: tp.fft.fft([1.0], axis=1), ShapeError, "axis 1 is out of range for rank 1"),
        (lambda: tp.fft.fft(1.0), ShapeError, "out of range for rank 0"),
        (lambda: tp.fft.fft(np.ones((2, 0))), ShapeError, "the last axis must not be empty"),
        (lambda: tp.fft.fft(["a"]), DTypeError, "fft: x must hold numbers, got string[1]"),
        (lambda: tp.fft.rfft([1j]), DTypeError, "RFFT(input=complex64[1])"),
        (lambda: tp.fft.irfft([1.0]), ShapeError, "must be at least 1, got 0"),
        (lambda: tp.fft.fftn(wave(2, 2), s=(1, 2), axes=(0,)), ArgumentError, "s has 2 lengths"),
        (lambda: tp.fft.fftn(wave(2), s=(1, 2)), ArgumentError, "x has 1 axes"),
        (lambda: tp.fft.fftfreq(0), ArgumentError, "n must be at least 1, got 0"),
        (lambda: tp.fft.fftfreq(4, dtype="int32"), DTypeError, "dtype must be floating"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def parts(z):
    return tp.real(z), tp.imag(z)


@pytest.mark.parametrize("n", [4, 6, 7, 9])
def test_gradients_in_first_and_second_order(n):
    x, y = real(2, 6), real(2, 6, salt=1)
    check_grads(lambda x, y: parts(tp.fft.fft(tp.complex(x, y), n=n)), [x, y], order=2)
    check_grads(lambda x, y: parts(tp.fft.ifft(tp.complex(x, y), n=n)), [x, y], order=2)


def test_a_filter_in_the_frequency_domain_can_be_trained():
    x = real(16)
    check_grads(
        lambda x, w: tp.fft.irfft(tp.fft.rfft(x) * tp.complex(w[0], w[1])),
        [x, real(2, 9)],
        order=2,
    )
