"""Fourier transforms from products of matrices, for devices that have complex numbers.

A length n = p * q is arranged as a matrix. Its columns are multiplied by the matrix of the
transform of p points and by the twiddle factors; then its rows are transformed in the same way
(Cooley and Tukey). The error grows with the logarithm of n. A prime length above ``_PLAIN``
becomes a convolution (Bluestein), whose length is a power of two.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.tables import DecompositionTable
from tensorplug.dispatch.calls import as_tensor
from tensorplug.ops.arrangement import flip
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.complexes import conj, real
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.fft import spectral as ops
from tensorplug.ops.joining import concat
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import matrix_transpose, reshape

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)

Array = np.ndarray[Any, Any]

_RADIX = 64  # points per matrix product: enough to be worth one
_PLAIN = 512  # a prime length up to this is one product


decompositions.of(ops.FFT)(lambda input: _transform(input, 1))
decompositions.of(ops.IFFT)(lambda input: _transform(input, -1) * (1 / input.shape[-1]))


@decompositions.of(ops.RFFT)
def rfft(input: Tensor, *, fft_length: int, out: TensorType) -> Tensor:
    whole = ops.fft(astype(_resize(input, fft_length), out.dtype))
    return slice_(whole, [0] * whole.ndim, out.shape)


@decompositions.of(ops.IRFFT)
def irfft(input: Tensor, *, fft_length: int) -> Tensor:
    half = _resize(input, fft_length // 2 + 1)
    mirrored = (fft_length - 1) // 2
    begin = [0] * (half.ndim - 1) + [1]
    inner = slice_(half, begin, [*half.shape[:-1], mirrored])
    return real(ops.ifft(concat([half, flip(conj(inner), axis=-1)], axis=-1)))


def _resize(x: Tensor, length: int) -> Tensor:
    have = x.shape[-1]
    if have < length:
        return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - have)])
    return slice_(x, [0] * x.ndim, [*x.shape[:-1], length])


def _transform(x: Tensor, sign: int) -> Tensor:
    """Transform along the last axis: forward for ``sign`` 1, backward without a factor for -1."""
    n = x.shape[-1]
    rows = reshape(x, (x.size // n, n))
    return reshape(_rows(rows, sign), x.shape)


def _rows(x: Tensor, sign: int) -> Tensor:
    count, n = x.shape
    p = _find_divisor(n)
    if p == n:
        if n > _PLAIN:
            return _transform_by_bluestein(x, sign)
        return matmul(x, _compute_roots(n, np.outer(np.arange(n), np.arange(n)), sign, x.dtype))
    q = n // p
    columns = reshape(x, (count, p, q))
    first = _compute_roots(p, np.outer(np.arange(p), np.arange(p)), sign, x.dtype)
    twiddles = _compute_roots(n, np.outer(np.arange(p), np.arange(q)), sign, x.dtype)
    between = matmul(first, columns) if p <= _PLAIN else _transform_columns(columns, sign)
    done = _rows(reshape(between * twiddles, (count * p, q)), sign)
    return reshape(matrix_transpose(reshape(done, (count, p, q))), (count, n))


def _transform_columns(x: Tensor, sign: int) -> Tensor:
    count, p, q = x.shape
    rows = reshape(matrix_transpose(x), (count * q, p))
    return matrix_transpose(reshape(_rows(rows, sign), (count, q, p)))


def _find_divisor(n: int) -> int:
    """Return how many points are transformed first: n itself if it is small or prime."""
    if n <= _RADIX:
        return n
    for p in range(_RADIX, 1, -1):
        if n % p == 0:
            return p
    return next((p for p in range(_RADIX + 1, int(n**0.5) + 1) if n % p == 0), n)


@lru_cache(maxsize=64)
def _circle(n: int) -> Array:
    """Return exp(-2 pi i k / n) for k below n, correct to the last bit but one."""
    angle = 2 * np.arange(n, dtype=np.longdouble) / n * np.arccos(np.longdouble(-1))
    return np.asarray(np.cos(angle) - 1j * np.sin(angle), np.complex128)


def _compute_roots(n: int, powers: Array, sign: int, dtype: DType) -> Tensor:
    """Return the n-th root of unity to these powers, as a constant."""
    values = _circle(n)[powers % n]
    return _make_constant(values if sign > 0 else values.conj(), dtype)


def _make_constant(values: Array, dtype: DType) -> Tensor:
    return as_tensor(values.astype(dtype.numpy), dtype)


def _transform_by_bluestein(x: Tensor, sign: int) -> Tensor:
    """Transform by way of j k = (j^2 + k^2 - (k - j)^2) / 2, a convolution with a chirp."""
    n = x.shape[-1]
    squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = _circle(2 * n)[squares]
    if sign < 0:
        chirp = chirp.conj()
    length = 1 << (2 * n - 2).bit_length()
    kernel = np.zeros(length, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[length - n + 1 :] = chirp[:0:-1].conj()
    spectrum = _make_constant(np.fft.fft(kernel) / length, x.dtype)
    around = _make_constant(chirp, x.dtype)
    convolved = _rows(_rows(_resize(x * around, length), 1) * spectrum, -1)
    return _resize(convolved, n) * around
