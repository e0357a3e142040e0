"""Casts by the rules of the kernel Cast, from those that every compiler has.

A narrow float that the machine does not have is an uint16 with its bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug.plugin import narrowing
from tensorplug_loops import formats

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Expression, Scalar

_TWO_64: Final = 2.0**64


class Converter:
    """Writes casts for a machine that has the narrow floats of these names.

    ``long``: whether it has integers of 64 bits. Otherwise int64 is an index, of 32 bits.
    """

    def __init__(self, narrow: frozenset[str], *, long: bool = True) -> None:
        self._narrow, self._long = narrow, long
        self._rounded: dict[int, tuple[Expression, Expression]] = {}

    def held(self, dtype: DType) -> DType:
        """Return the dtype in which numbers of ``dtype`` lie in memory and in variables."""
        is_narrow = dtype.compute is not dtype
        return dt.uint16 if is_narrow and dtype.name not in self._narrow else dtype

    def constant(self, value: Scalar, dtype: DType) -> Expression:
        """Return a number, rounded to ``dtype``."""
        if self.held(dtype) is dtype:
            return ex.constant(value, dtype)
        rounded = narrowing.convert(np.array(value, np.float64), dtype)
        return ex.constant(int(rounded.view(np.uint16)), dt.uint16)

    def cast(self, x: Expression, source: DType, target: DType) -> Expression:
        """Convert a number of ``source``, as it is held, to one of ``target``."""
        if source is target:
            return x
        if self.held(source) is not source:
            _, wide = self._rounded.get(id(x)) or (x, None)
            if wide is None:
                wide = (_unpack_half if source is dt.float16 else _unpack_upper)(x)
            return self.cast(wide, dt.float32, target)
        if target.compute is not target:
            return self._narrowed(x, source, target)
        if target is dt.bool_:
            return ex.apply("logical_not", ex.apply("equal", x, 0))
        if source in dt.FLOATING and target is dt.int64 and not self._long:
            return _index(ex.cast(x, source.compute))
        if source in dt.FLOATING and target in dt.INTEGER:
            return _whole(ex.cast(x, source.compute), target)
        return ex.cast(x, target)

    def _narrowed(self, x: Expression, source: DType, target: DType) -> Expression:
        """Convert to a narrow float, rounded once; integers to float16 by way of float32."""
        if source in dt.FLOATING or target is not dt.float16:
            x = formats.to_float32(x)
        x = ex.cast(x, dt.float32)
        if self.held(target) is target:
            return ex.cast(x, target)
        pack, round_ = (
            (_pack_half, _round_half) if target is dt.float16 else (_pack_upper, _round_upper)
        )
        packed = pack(x)
        self._rounded[id(packed)] = packed, round_(x)  # less than packing and unpacking
        return packed


def _index(x: Expression) -> Expression:
    """Convert a float to an index: truncated; what is too large is the last one of its sign."""
    most = float(dt.int32.max - 127)  # of float32, the largest that fits
    x = ex.where(ex.apply("equal", x, x), x, 0)
    x = ex.where(ex.apply("less", x, most), x, most)
    return ex.cast(ex.where(x < -most, -most, x), dt.int64)


def _size(x: Expression) -> Expression:
    return ex.apply("abs", x)


def _unpack_half(x: Expression) -> Expression:
    """Return the float32 of the bits of a float16."""
    bits = ex.cast(x, dt.uint32)
    size = bits & 0x7FFF
    special = ex.bitcast((size << 13) | 0x7F800000, dt.float32)
    normal = ex.bitcast((size << 13) + (112 << 23), dt.float32)
    normal = ex.where(ex.apply("less", size, 0x7C00), normal, special)
    small = ex.cast(size, dt.float32) * 2.0**-24
    sign = (bits & 0x8000) << 16
    value = ex.where(ex.apply("less", size, 0x400), small, normal)
    return ex.bitcast(ex.bitcast(value, dt.uint32) | sign, dt.float32)


def _pack_half(x: Expression) -> Expression:
    """Return the bits of the nearest float16, of even ones if two are; NaN stays NaN."""
    bits = ex.bitcast(x, dt.uint32)
    size = bits & 0x7FFFFFFF
    near = ((size + 0xFFF + ((size >> 13) & 1)) >> 13) - (112 << 10)
    small = (
        ex.bitcast(ex.bitcast(size, dt.float32) + 0.5, dt.uint32) - 0x3F000000
    )  # its last bit: 2**-24
    found = ex.where(ex.apply("less", size, 0x38800000), small, near)
    found = ex.where(ex.apply("less", size, 0x477FF000), found, 0x7C00)
    undefined = ((size >> 13) & 0x3FF) | 0x7E00
    found = ex.where(ex.apply("less", ex.constant(0x7F800000, dt.uint32), size), undefined, found)
    return ex.cast(found | ((bits >> 16) & 0x8000), dt.uint16)


def _round_half(x: Expression) -> Expression:
    """Return a float32 rounded to the digits and the range of float16."""
    bits = ex.bitcast(x, dt.uint32)
    size = bits & 0x7FFFFFFF
    near = (size + 0xFFF + ((size >> 13) & 1)) & 0xFFFFE000
    small = ex.bitcast((ex.bitcast(size, dt.float32) + 0.5) - 0.5, dt.uint32)
    rounded = ex.where(ex.apply("less", size, 0x38800000), small, near)
    rounded = ex.where(ex.apply("less", size, 0x477FF000), rounded, 0x7F800000)
    rounded = ex.where(ex.apply("less", ex.constant(0x7F800000, dt.uint32), size), size, rounded)
    return ex.bitcast(rounded | (bits & 0x80000000), dt.float32)


def _unpack_upper(x: Expression) -> Expression:
    """Return the float32 whose upper half these bits are: bfloat16."""
    return ex.bitcast(ex.cast(x, dt.uint32) << 16, dt.float32)


def _pack_upper(x: Expression) -> Expression:
    """Return the upper half of a float32, rounded, halves to even; NaN stays NaN."""
    return ex.cast(_near_upper(x) >> 16, dt.uint16)


def _round_upper(x: Expression) -> Expression:
    """Return a float32 rounded to the digits of bfloat16."""
    return ex.bitcast(_near_upper(x) & 0xFFFF0000, dt.float32)


def _near_upper(x: Expression) -> Expression:
    """Return bits whose upper half is that of a float32, rounded."""
    bits = ex.bitcast(x, dt.uint32)
    near = bits + (((bits >> 16) & 1) + 0x7FFF)
    return ex.where(ex.apply("equal", x, x), near, bits | 0x400000)


def _whole(x: Expression, target: DType) -> Expression:
    """Convert a float to an integer: truncated, wrapped; NaN and infinities give 0.

    Dividing by a power of 2 is exact, and so is the remainder.
    """
    wide = dt.uint64 if target.itemsize == 8 else dt.uint32
    modulus = _TWO_64 if wide is dt.uint64 else 2.0**32
    whole = ex.apply("trunc", x)
    rest = whole - ex.apply("trunc", whole * (1 / modulus)) * modulus
    rest = ex.where(ex.apply("equal", rest, rest), rest, 0)
    bits = ex.cast(_size(rest), wide)
    return ex.cast(ex.where(rest < 0, -bits, bits), target)
