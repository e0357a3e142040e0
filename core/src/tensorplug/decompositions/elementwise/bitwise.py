"""Bits from arithmetic: digits to base 16, looked up in a table of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.creation import asarray
from tensorplug.ops.elementwise import bitwise as ops
from tensorplug.ops.elementwise.arithmetic import add_n, pow
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import logical_and, logical_not, logical_or, not_equal
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.order import reverse_order

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())

_PAIRS = [first & second for first in range(16) for second in range(16)]


@decompositions.of(ops.BITWISE_AND)
def bitwise_and(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype is dt.bool_:
        return logical_and(a, b)
    # Floored division shifts two's complement to the right, and the remainder is the last digit.
    table = asarray(_PAIRS, dtype=a.dtype)
    count = 2 * a.dtype.itemsize
    parts = []
    for number in range(count):
        pair = astype(a % 16, dt.int32) * 16 + astype(b % 16, dt.int32)
        digit = gather(table, pair)
        if number == count - 1 and a.dtype in dt.SIGNED:
            digit = where(digit >= 8, digit - 16, digit)  # the first bit counts negative
        parts.append(digit * 16**number)
        a, b = a // 16, b // 16
    return add_n(parts)


decompositions.of(ops.BITWISE_OR)(
    lambda a, b: logical_or(a, b) if a.dtype is dt.bool_ else a + b - ops.bitwise_and(a, b)
)
decompositions.of(ops.BITWISE_XOR)(
    lambda a, b: not_equal(a, b) if a.dtype is dt.bool_ else a + b - 2 * ops.bitwise_and(a, b)
)
decompositions.of(ops.INVERT)(
    lambda x: logical_not(x) if x.dtype is dt.bool_ else reverse_order(x)
)


@decompositions.of(ops.LEFT_SHIFT)
def left_shift(a: Tensor, b: Tensor) -> Tensor:
    inside = logical_and(b >= 0, b < 8 * a.dtype.itemsize)
    return where(inside, a * pow(2, where(inside, b, 0)), 0)


@decompositions.of(ops.RIGHT_SHIFT)
def right_shift(a: Tensor, b: Tensor) -> Tensor:
    # The highest power of 2 that the dtype has; a shift by more leaves the sign.
    signed = a.dtype in dt.SIGNED
    inside = logical_and(b >= 0, b < 8 * a.dtype.itemsize - signed)
    outside = -astype(a < 0, a.dtype) if signed else 0
    return where(inside, a // pow(2, where(inside, b, 0)), outside)
