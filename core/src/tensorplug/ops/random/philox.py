"""Philox4x32-10 for Python integers, and its constants for the kernels.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy
as 1, 2, 3", SC11, 2011. The function is a bijection of counters of four 32-bit words, chosen by a
key of two words.
"""

from __future__ import annotations

from typing import Final

Block = tuple[int, int, int, int]

ROUNDS: Final = 10
MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)  # for the first and the third word
STEPS: Final = (0x9E3779B9, 0xBB67AE85)  # added to the key after each round

_MASK: Final = 0xFFFFFFFF


def block(counter: Block, key: tuple[int, int]) -> Block:
    """Return the four words of ``counter`` under ``key``; all words are in [0, 2**32)."""
    a, b, c, d = counter
    first, second = key
    for _ in range(ROUNDS):
        one, two = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a = (two >> 32) ^ b ^ first
        c = (one >> 32) ^ d ^ second
        b, d = two & _MASK, one & _MASK
        first, second = (first + STEPS[0]) & _MASK, (second + STEPS[1]) & _MASK
    return a, b, c, d
