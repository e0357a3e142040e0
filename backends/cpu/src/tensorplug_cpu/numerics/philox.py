"""Philox4x32-10 on arrays: 32-bit words in 64-bit integers, which hold their products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import philox

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array


BLOCKS: Final = 1 << 14  # at a time: the arrays of a round stay in the cache
_FEW: Final = 8  # blocks that Python's integers make faster than a hundred calls of NumPy

_MASK: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_MULTIPLIERS: Final = tuple(np.uint64(multiplier) for multiplier in philox.MULTIPLIERS)


def words(key: Array, first: int, count: int) -> Array:
    """Return the words (uint32) of ``count`` blocks from block ``first`` on, modulo 2**64.

    ``key``: four words; ``tensorplug.ops.random.random`` says what they mean.
    """
    one, two, three, four = (int(word) for word in key)
    if count <= _FEW:
        numbers = ((first + index) % 2**64 for index in range(count))
        few = [
            philox.block((number % 2**32, number >> 32, three, four), (one, two))
            for number in numbers
        ]
        return np.array(few, np.uint32).reshape(-1)
    counters = np.arange(count, dtype=np.uint64) + np.uint64(first % 2**64)
    a: Any = counters & _MASK
    b: Any = counters >> _HALF
    c: Any = np.uint64(three)  # one number for all blocks until the second round
    d: Any = np.uint64(four)
    for _ in range(philox.ROUNDS):
        p, q = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = (q >> _HALF) ^ b ^ np.uint64(one), q & _MASK
        c, d = (p >> _HALF) ^ d ^ np.uint64(two), p & _MASK
        one, two = (one + philox.STEPS[0]) % 2**32, (two + philox.STEPS[1]) % 2**32
    result = np.empty((count, 4), np.uint32)
    for at, word in enumerate((a, b, c, d)):
        result[:, at] = word
    return result.reshape(-1)
