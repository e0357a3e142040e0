"""Words of Philox from primitives, in uint32, or in int32 where a device has no uint32.

The primitives lack 64-bit products, shifts and exclusive or. So words are split into halves,
whose products fit into a word, and into single bits, which are added modulo 2. Sums and products
wrap, so that int32 has the same bits; quotients and comparisons need the functions below.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.ops.creation import full, zeros
from tensorplug.ops.elementwise.arithmetic import add
from tensorplug.ops.elementwise.arithmetic import pow as pow_
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.comparison import less
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.joining import concat, stack
from tensorplug.ops.movement import broadcast_to, expand_dims, permute_dims, reshape
from tensorplug.ops.random import philox
from tensorplug.ops.ranges import arange
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

_SEGMENT: Final = 1 << 14  # blocks at a time; their single bits take 32 times the memory


def draw(key: Tensor, *, shape: Shape, start: int) -> Tensor:
    """Return what the spec RandomBits returns, in the dtype of the key."""
    count = shapes.size(shape)
    if not count:
        return zeros(shape, dtype=key.dtype)
    blocks = -(-count // 4)
    parts = [
        _draw_blocks(key, start + first, min(_SEGMENT, blocks - first))
        for first in range(0, blocks, _SEGMENT)
    ]
    return reshape(slice_(concat(parts), (0,), (count,)), shape)


def shifted(x: Tensor, by: int) -> Tensor:
    """Return ``x`` as an unsigned integer, divided by ``2**by``."""
    quotient: Tensor = x // 2**by
    return quotient if x.dtype in dt.UNSIGNED else quotient % 2 ** (8 * x.dtype.itemsize - by)


def is_below(a: Tensor, b: Tensor | int) -> Tensor:
    """Return ``a < b`` for unsigned integers."""
    if a.dtype in dt.UNSIGNED:
        return less(a, b)
    least = a.dtype.min
    return less(a + least, b + least)


def widened(x: Tensor, dtype: DType) -> Tensor:
    """Return ``x`` as an unsigned integer in ``dtype``."""
    wide = astype(x, dtype)
    if x.dtype in dt.SIGNED and dtype.itemsize > x.dtype.itemsize:
        wide = wide % 2 ** (8 * x.dtype.itemsize)
    return wide


def multiply_wide(a: Tensor, b: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Return the upper and lower halves of products of unsigned integers of 2 * half bits.

    This is long multiplication with digits of ``half`` bits. No partial sum overflows.
    """
    base = 2**half
    a1, a0, b1, b0 = shifted(a, half), a % base, shifted(b, half), b % base
    one = a1 * b0 + shifted(a0 * b0, half)
    two = a0 * b1 + one % base
    return a1 * b1 + shifted(one, half) + shifted(two, half), a * b


def _draw_blocks(key: Tensor, first: int, count: int) -> Tensor:
    """Return the words of ``count`` blocks in order.

    The rows of ``x`` are the first and third word of all blocks, those of ``y`` the second and
    fourth. Each round treats both rows alike and then swaps them.
    """
    dtype = key.dtype
    index = arange(count, dtype=dtype)
    before_carry = min(2**32 - first % 2**32, count) - 1
    low = index + _wrapped(first, dtype)
    high = astype(less(before_carry, index), dtype) + _wrapped(first // 2**32, dtype)
    words = [broadcast_to(slice_(key, (at,), (1,)), (count,)) for at in (2, 3)]
    x, y = stack([low, words[0]]), stack([high, words[1]])
    keys = reshape(slice_(key, (0,), (2,)), (2, 1))
    steps, multipliers = _column(philox.STEPS, dtype), _column(philox.MULTIPLIERS, dtype)
    for number in range(philox.ROUNDS):
        upper, lower = multiply_wide(x, multipliers, 16)
        x, y = _xor(_swap_rows(upper), y, keys + steps * number), _swap_rows(lower)
    return reshape(permute_dims(reshape(stack([x, y], axis=1), (4, count))), (4 * count,))


def _wrapped(number: int, dtype: DType) -> int:
    """Return the number of ``dtype`` that has the lowest 32 bits of ``number``."""
    least = int(dtype.min)
    return (number - least) % 2**32 + least


def _column(numbers: tuple[int, int], dtype: DType) -> Tensor:
    return concat([full((1, 1), _wrapped(number, dtype), dtype=dtype) for number in numbers])


def _swap_rows(x: Tensor) -> Tensor:
    """Return ``x`` with its two rows swapped."""
    return concat([slice_(x, (1, 0)), slice_(x, (0, 0), (1, -1))])


def _xor(*words: Tensor) -> Tensor:
    dtype = words[0].dtype
    places = arange(32, dtype=dtype)
    powers = pow_(full((32,), 2, dtype=dtype), places)
    if dtype is dt.uint32:
        counts = [expand_dims(word, axis=-1) // powers % 2 for word in words]
    else:  # a product moves each bit to the place of the sign
        moved = pow_(full((32,), 2, dtype=dtype), 31 - places)
        counts = [astype(less(expand_dims(word, axis=-1) * moved, 0), dtype) for word in words]
    return sum_(reduce(add, counts) % 2 * powers, axis=-1)
