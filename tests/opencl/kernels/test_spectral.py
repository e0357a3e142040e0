"""Fourier transforms on OpenCL: every kind of length, and the passes they are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.ops.fft import spectral as ops
from tensorplug_opencl.fourier import butterflies, transforms

# Powers of two, products of small primes, each small prime, large primes; vectors of 8, 4, 2, 1.
LENGTHS = [1, 2, 3, 5, 7, 11, 13, 16, 17, 36, 45, 64, 100, 121, 210, 256, 331, 1024, 2187, 8192]


def signal(*shape):
    real, imaginary = np.random.default_rng(sum(shape)).standard_normal((2, *shape))
    return (real + 1j * imaginary).astype(np.complex64)


def close(found, wanted, length):
    assert found.dtype == (np.complex64 if np.iscomplexobj(wanted) else np.float32)
    bound = 2e-7 * (math.log2(length) + 1) * np.sqrt(np.mean(np.abs(wanted) ** 2))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=8 * bound)


@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_there_and_back(call, n):
    x = signal(3, n)
    close(call(ops.FFT, x), np.fft.fft(x.astype(np.complex128)), n)
    close(call(ops.IFFT, x), np.fft.ifft(x.astype(np.complex128)), n)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 17, 64, 100, 331])
def test_real_transforms_there_and_back(call, n):
    x = signal(2, n).real.copy()
    close(call(ops.RFFT, x, fft_length=n), np.fft.rfft(x.astype(np.float64)), n)
    half = signal(2, n // 2 + 1)
    close(call(ops.IRFFT, half, fft_length=n), np.fft.irfft(half.astype(np.complex128), n), n)


@pytest.mark.parametrize("length", [4, 5, 9, 12])
def test_signals_are_cut_and_filled_up(call, length):
    x = signal(2, 8)
    expected = np.fft.rfft(x.real.astype(np.float64), length)
    close(call(ops.RFFT, x.real.copy(), fft_length=length), expected, length)
    expected = np.fft.irfft(x.astype(np.complex128), length)
    close(call(ops.IRFFT, x, fft_length=length), expected, length)


def test_doubles_where_the_device_has_them(call, context):
    if dt.complex128 not in context.device.backend.dtypes:
        pytest.skip("the device has no double")
    for n in (8, 17):
        x = signal(2, n).astype(np.complex128)
        np.testing.assert_allclose(call(ops.FFT, x), np.fft.fft(x), rtol=0, atol=1e-12)


def test_ranks_and_no_rows(call):
    x = signal(2, 1, 3, 8)
    close(call(ops.FFT, x), np.fft.fft(x.astype(np.complex128)), 8)
    assert call(ops.FFT, x[:0]).shape == (0, 1, 3, 8)
    assert call(ops.RFFT, x[:0].real.copy(), fft_length=6).shape == (0, 1, 3, 4)


@pytest.mark.parametrize("n", range(1, 200))
def test_factors_are_small_and_many_enough(n):
    actual = butterflies.factorize(n)
    if actual is None:
        assert any(n % prime == 0 for prime in range(17, n + 1) if _is_prime(prime))
    else:
        assert math.prod(actual) == n
        assert all(1 < factor <= butterflies.LARGEST for factor in actual)


def _is_prime(n):
    return all(n % index for index in range(2, math.isqrt(n) + 1))


def test_passes_of_equal_size_need_fewer_registers():
    assert butterflies.factorize(1024) == (16, 8, 8)
    assert butterflies.factorize(64) == (8, 8)


@pytest.mark.parametrize("n", range(1, butterflies.LARGEST + 1))
def test_butterflies_are_transforms(n):
    """The C text is Python's as well, once declarations and casts are gone."""
    lines, results = butterflies.write_butterfly([(f"a{at}", f"b{at}") for at in range(n)])
    x = signal(n).astype(np.complex128)
    names = {f"a{at}": z.real for at, z in enumerate(x)}
    names |= {f"b{at}": z.imag for at, z in enumerate(x)}
    for line in lines:
        for part in line.strip().removeprefix("const V ").removesuffix(";").split(", "):
            name, _, value = part.partition(" = ")
            names[name] = eval(value.replace("(E)", ""), {}, dict(names))
    actual = [eval(re, {}, names) + 1j * eval(im, {}, names) for re, im in results]
    np.testing.assert_allclose(actual, np.fft.fft(x), rtol=0, atol=1e-13)


def test_the_circle_is_exact_where_it_crosses_the_axes():
    at = transforms.compute_circle(8)
    np.testing.assert_allclose(at[[0, 2, 4, 6]], [1, -1j, -1, 1j], atol=1e-16)
