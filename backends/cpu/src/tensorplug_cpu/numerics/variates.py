"""Exponential and normal variates from random words: Box-Muller's transform on arrays.

Arrays here are NumPy's, or vectors with their operators (``jit.codegen.lanes``).

Every step is NumPy's addition, subtraction, multiplication, division or square root of one float
dtype, in the order stated there, so that the bits are those of every other backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import box_muller
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.numerics.special_functions import horner

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array


_LOW_BITS: Final = int(np.float64(box_muller.LOW).view(np.int64))


def joined(words: Array) -> Array:
    """Return each two words, the lower half first, as one number of 64 bits."""
    little = words.astype("<u4", copy=False).view("<u8")  # what most machines have anyway
    return little.astype(np.uint64, copy=False)


def _parted(precision: box_muller.Precision, x: Any) -> tuple[Any, Any]:
    """Return the nearest float of a float64, and what is left, None where nothing is."""
    if precision.dtype is dt.float64:
        return x, None
    nearest = x.astype(np.float32)
    return nearest, (x - nearest).astype(np.float32)


def _split(precision: box_muller.Precision, x: Any) -> tuple[Any, Any, Any]:
    """Return the nearest float of a float64, and its halves, of which the lower takes the rest."""
    nearest, rest = _parted(precision, x)
    high, low = box_muller.halved(precision, nearest)
    return nearest, high, low if rest is None else low + rest


def minus_log(precision: box_muller.Precision, words: Any) -> box_muller.Pair:
    """Return ``-ln u``; u is made of a word of 32 bits for float32, of 64 for float64."""
    unused = words.dtype.itemsize * 8 - precision.bits
    m = ((words >> words.dtype.type(unused)) | words.dtype.type(1)).astype(np.float64)
    # Take from the exponent's bits what makes m / 2**k lie in [LOW, 2 * LOW).
    whole = m.view(np.int64)
    k = (whole - _LOW_BITS) >> 52
    f, high, low = _split(precision, (whole - (k << 52)).view(np.float64) - 1.0)
    e = (precision.bits - k).astype(f.dtype)
    rest = horner(precision.logarithm, f)
    return box_muller.minus_log(precision, e, f, (high, low), rest)


def _octant(
    precision: box_muller.Precision, angles: Any
) -> tuple[box_muller.Pair, box_muller.Pair]:
    """Return cosine and sine of pi/4 times the float64s ``angles``, in (0, 1)."""
    part, high, low = _split(precision, angles)
    first, second = precision.quarter_pi
    angle, error = box_muller.exact_sum(high * first, low * first + part * second)
    z = angle * angle
    sine = box_muller.exact_sum(angle, error + angle * z * horner(precision.sine, z))
    high, low = box_muller.halved(precision, angle)
    low += error
    square = high * high * 0.5
    total = 1.0 - square
    bent = ((1.0 - total) - square) - low * (high + low * 0.5)
    return box_muller.exact_sum(total, bent + z * z * horner(precision.cosine, z)), sine


def normal_pairs(
    precision: box_muller.Precision, radii: Any, angles: Any, sqrt: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """Return the bits of both normal variates of each pair, as words.

    ``radii``, ``angles``: words of 32 bits for float32, of 64 for float64, in arrays or in
    vectors with their operators. ``sqrt``: correctly rounded square roots.
    """
    kind, width = radii.dtype.type, 8 * radii.dtype.itemsize
    kept = (angles << kind(3)) >> kind(width - precision.octant_bits)
    part = (kept | kind(1)).astype(np.float64) * 2.0**-precision.octant_bits
    cosine, sine = _octant(precision, part)
    radius = box_muller.root(precision, minus_log(precision, radii), sqrt)
    # The angle's upper three bits: change places, the first one's sign, the second one's.
    one, two = (box_muller.product(radius, factor).view(radii.dtype) for factor in (cosine, sine))
    swap = (one ^ two) & (kind(0) - (angles >> kind(width - 1)))
    sign = kind(1 << (width - 1))
    return (
        one ^ swap ^ ((angles << kind(1)) & sign),
        two ^ swap ^ ((angles << kind(2)) & sign),
    )


def normals(precision: box_muller.Precision, words: Array) -> Array:
    """Return pairs of normal variates, one after the other.

    ``words``: of 32 bits for float32, of 64 for float64; two for each pair.
    """
    radii, angles = words[0::2], words[1::2]
    result = np.empty((radii.size, 2), words.dtype)
    result[:, 0], result[:, 1] = normal_pairs(precision, radii, angles, np.sqrt)
    return result.reshape(-1).view(precision.dtype.numpy)
