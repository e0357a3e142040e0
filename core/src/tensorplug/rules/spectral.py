"""Gradients of Fourier transforms, which are linear: the transposed matrix times dy.

The matrix of FFT is symmetric. ``rules.complexes`` defines the cotangent of complex numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops.creation import full, ones
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.complexes import conj
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.fft import spectral as ops
from tensorplug.ops.joining import concat

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(ops.FFT, input=lambda dy: ops.fft(dy))
rules.formulas(ops.IFFT, input=lambda dy: ops.ifft(dy))


@rules.vjp(ops.RFFT, "input")
def rfft(dy: Tensor, input_type: TensorType, fft_length: int) -> Tensor:
    # irfft adds its conjugate to each element except the first and the middle one.
    half = conj(dy) / _count_multiplicity(fft_length, dy)
    return _fit(ops.irfft(half, n=fft_length, norm="forward"), input_type)


@rules.vjp(ops.IRFFT, "input")
def irfft(dy: Tensor, input_type: TensorType, fft_length: int) -> Tensor:
    spectrum = conj(ops.rfft(dy, norm="forward"))
    return _fit(spectrum * _count_multiplicity(fft_length, spectrum), input_type)


def _count_multiplicity(n: int, spectrum: Tensor) -> Tensor:
    """Return how often each element of half a spectrum of n points occurs in the whole."""
    dtype = dt.real_part(spectrum.dtype)
    twice = full((n - 1) // 2, 2, dtype=dtype)
    parts = [ones(1, dtype=dtype), twice, ones(1 if n % 2 == 0 else 0, dtype=dtype)]
    return concat(parts)


def _fit(x: Tensor, input_type: TensorType) -> Tensor:
    """Return ``x`` cut or padded to the input's length, in its dtype."""
    have, length = x.shape[-1], input_type.shape[-1]
    if have < length:
        x = pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - have)])
    elif have > length:
        x = slice_(x, [0] * x.ndim, input_type.shape)
    return x if x.dtype is input_type.dtype else astype(x, input_type.dtype)
