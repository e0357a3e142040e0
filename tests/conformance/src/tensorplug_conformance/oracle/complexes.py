"""References for the parts of complex numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import finfo

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def joined(real: Array, imag: Array) -> Array:
    """Pairs of floats, seen as complex numbers."""
    real, imag = np.broadcast_arrays(real, imag)
    whole = np.result_type(real, np.complex64)
    pairs = np.stack([real, imag], axis=-1).astype(finfo(whole).dtype)
    return np.asarray(np.ascontiguousarray(pairs).view(whole)[..., 0])


def real(input: Array) -> Array:
    """The first of each pair of floats."""
    return _parts(input)[..., 0] if input.dtype.kind == "c" else input


def imag(input: Array) -> Array:
    """The second of each pair of floats."""
    return _parts(input)[..., 1] if input.dtype.kind == "c" else np.zeros_like(input)


def _parts(input: Array) -> Array:
    dense = np.ascontiguousarray(input).reshape(input.shape)
    return np.asarray(dense[..., None].view(finfo(input.dtype).dtype))


def modulus(x: Array) -> Array:
    """Square root of the sum of squares, in wide arithmetic, where no square overflows."""
    z = wide(x)
    return np.asarray(np.sqrt(z.real**2 + z.imag**2))


def conjugate(x: Array) -> Array:
    """The number minus twice its imaginary part."""
    if x.dtype.kind != "c":
        return x
    pairs = _parts(x).copy()
    pairs[..., 1] *= -1
    return np.asarray(pairs.view(x.dtype)[..., 0])
