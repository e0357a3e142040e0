"""Dtypes for storage as bits in a byte: what they stand for, and rounding to them.

Both are scalar expressions of unsigned integers and float32, so all drivers compute the same bits,
several elements at once. A float with p significant bits has its exponent above p - 1 bits; if
that field is 0, the leading bit is absent. So its bits, without the sign, are those of a float32
less 24 - p at the end, apart from the bias: numbers are ordered as their bits are.

Numbers become float32 first: exactly, or such that rounding once more is rounding once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Expression


HELD: Final = dt.uint8
"""The dtype of the byte that holds an element; unused bits are 0."""

_NAN: Final = 0x7FC00000
_INFINITE: Final = 0x7F800000
_SIGN: Final = 0x80000000
_LEADING: Final = 1 << 23  # of float32, as a bit
# The bits of a number that is too large, and of NaN, without a sign. In float4, NaN becomes the 0
# of the other sign, as in ml_dtypes.
_SPECIAL: Final = {
    dt.float8_e4m3fn: (0x7F, 0x7F),
    dt.float8_e4m3fnuz: (0x80, 0x80),
    dt.float8_e5m2: (0x7C, 0x7E),
    dt.float8_e5m2fnuz: (0x80, 0x80),
    dt.float4_e2m1fn: (0x7, 0x8),
}
_ONLY_NAN: Final = 0x80  # of formats without a negative 0
_POWERS: Final = dt.float8_e8m0fnu  # exponents alone, as those of float32


def decode(held: Expression, dtype: DType) -> Expression:
    """Return what the bits ``held`` of ``dtype`` stand for: int8, uint8 or float32."""
    if dtype in dt.WHOLE:
        held = held & (1 << dtype.bits) - 1
        if dtype.kind == "unsigned":
            return held
        return ex.bitcast((held ^ -dtype.min) - -dtype.min, dt.int8)
    bits = ex.cast(held, dt.uint32)
    if dtype is _POWERS:
        number = ex.where(_equal(bits, 0), _LEADING >> 1, bits << 23)
        return ex.bitcast(ex.where(_equal(bits, 0xFF), _NAN, number), dt.float32)
    half = 1 << dtype.bits - 1
    size = bits & half - 1
    lost = 24 - dtype.significand
    number = ex.where(
        size < 1 << dtype.significand - 1,
        ex.bitcast(ex.cast(size, dt.float32) * _gap(dtype), dt.uint32),
        (size << lost) + (_bits(dtype.smallest_normal) - _LEADING),
    )
    too_large, nan = _SPECIAL[dtype]
    if nan == _ONLY_NAN:
        number = ex.where(_equal(bits, nan), _NAN, number)
    elif too_large == nan:
        number = ex.where(_equal(size, nan), _NAN, number)
    elif dtype.bits == 8:
        number = number | ex.where(size < too_large, ex.constant(0, dt.uint32), _INFINITE)
    return ex.bitcast(number | (bits & half) << 32 - dtype.bits, dt.float32)


def encode(number: Expression, dtype: DType) -> Expression:
    """Return the bits of a real number or boolean, rounded to ``dtype`` once, in a byte."""
    if dtype in dt.WHOLE:
        whole = ex.cast(number, dt.unpacked(dtype))
        return ex.bitcast(whole, HELD) & (1 << dtype.bits) - 1
    bits = ex.bitcast(to_float32(number), dt.uint32)
    rounded = _round_to_powers(bits) if dtype is _POWERS else _round(bits, dtype)
    return ex.cast(rounded, HELD)


def _round(bits: Expression, dtype: DType) -> Expression:
    """Return the bits of a format with signs, from those of a float32."""
    lost, least = 24 - dtype.significand, _bits(dtype.smallest_normal)
    size = bits & _SIGN - 1
    up = ((1 << lost - 1) - 1) + ((size >> lost) & 1)  # to the nearest, of two the even one
    normal = ((size + up) >> lost) - ((least - _LEADING) >> lost)
    # Of numbers below, a sum with a power of 2 whose last digit is theirs is rounded alike.
    added = _gap(dtype) * 2.0**23
    small = ex.bitcast(ex.bitcast(size, dt.float32) + added, dt.uint32) - _bits(added)
    rounded = ex.where(size < least, small, normal)
    too_large, nan = _SPECIAL[dtype]
    most = (_bits(dtype.max) - least + _LEADING) >> lost
    rounded = ex.where(rounded > most, too_large, rounded)
    rounded = ex.where(size > _INFINITE, nan, rounded)
    signed = rounded ^ (bits & _SIGN) >> 32 - dtype.bits
    if nan == _ONLY_NAN:
        return ex.where(_equal(rounded & _ONLY_NAN - 1, 0), rounded, signed)
    return signed


def _round_to_powers(bits: Expression) -> Expression:
    """Return exponents, from the bits of a float32; a number halfway between goes up."""
    exponent = (bits + (_LEADING >> 1)) >> 23
    small = ex.cast(bits < (_LEADING >> 1) + (_LEADING >> 2), dt.uint32) ^ 1
    exponent = ex.where(bits < _LEADING, small, exponent)
    positive = bits - 1 < _INFINITE - 1  # neither 0, whose bits less 1 are the largest, nor NaN
    return ex.where(positive, exponent, 0xFF)


def to_float32(number: Expression) -> Expression:
    """Return a number as float32 such that rounding that to fewer digits is rounding once.

    If float32 does not hold a number, the result is one of the two beside it: the one whose last
    digit is odd. Source: Boldo and Melquiond, Emulation of a FMA and correctly rounded sums:
    proved algorithms using rounding to odd, 2008.
    """
    if number.dtype in dt.INTEGER and number.dtype.itemsize > 2:
        return _whole_to_odd(number)
    near = ex.cast(number, dt.float32)
    if number.dtype is not dt.float64:
        return near
    back = ex.cast(near, dt.float64)
    bits = ex.bitcast(near, dt.uint32)
    odd = (bits - ex.cast(abs(number) < abs(back), dt.uint32)) | 1
    unknown = ex.apply("logical_not", _equal(number, number))
    exact = ex.apply("logical_or", _equal(back, number), unknown)
    return ex.bitcast(ex.where(exact, bits, odd), dt.float32)


def _whole_to_odd(number: Expression) -> Expression:
    unsigned = dt.uint64 if number.dtype.itemsize == 8 else dt.uint32
    zero = ex.constant(0, unsigned)
    size = ex.bitcast(number, unsigned)
    if number.dtype.kind == "signed":
        size = ex.where(number < 0, zero - size, size)
    # Without the bit below the last one of float32, a number is rounded down.
    near = ex.bitcast(ex.cast(size & ~(size >> 24), dt.float32), dt.uint32)
    lost = ex.apply("logical_not", _equal(ex.cast(ex.bitcast(near, dt.float32), unsigned), size))
    odd = ex.bitcast(near | ex.cast(lost, dt.uint32), dt.float32)
    return ex.where(number < 0, -odd, odd) if number.dtype.kind == "signed" else odd


def _equal(a: Expression, b: Expression | int) -> Expression:
    return ex.apply("equal", a, b)


def _gap(dtype: DType) -> float:
    """Return the distance of the numbers next to 0."""
    return dtype.smallest_normal * dtype.eps


def _bits(number: float) -> int:
    return int(np.float32(number).view(np.uint32))
