"""FarmHash's 64-bit fingerprint of many strings at a time.

TensorFlow's hash buckets use this function, so ours agree with them. Strings of one range of
lengths take the same steps, which run on all of them at once. 64-bit words wrap, as the function
intends. Source: G. Pike, FarmHash, ``farmhashna::Hash64`` (2014).
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

__all__ = ["fingerprints"]

Words = np.ndarray[Any, np.dtype[np.uint64]]

_K0 = np.uint64(0xC3A5C85C97CB3127)  # three primes, named as in the source
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_SEED = np.uint64(81)


def fingerprints(texts: list[bytes]) -> Words:
    """Return the fingerprint of each string."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    every = _Texts(b"".join(texts), np.cumsum(lengths) - lengths, lengths)
    result = np.empty(len(texts), np.uint64)
    with np.errstate(over="ignore"):
        for low, high, hashed in (
            (0, 0, _empty),
            (1, 3, _hash_up_to_3),
            (4, 7, _hash_up_to_7),
            (8, 16, _hash_up_to_16),
            (17, 32, _hash_up_to_32),
            (33, 64, _hash_up_to_64),
        ):
            at = np.flatnonzero((lengths >= low) & (lengths <= high))
            if at.size:
                result[at] = hashed(every.some(at))
        # Group longer ones by their number of 64-byte blocks; each group loops together.
        blocks = (lengths - 1) // 64
        for count in sorted(set(blocks[lengths > 64].tolist())):
            at = np.flatnonzero((lengths > 64) & (blocks == count))
            result[at] = _hash_longer(every.some(at), count)
    return result


class _Texts:
    """Strings in one buffer. ``end`` is the length of each string."""

    def __init__(self, memory: bytes, begin: Any, lengths: Any) -> None:
        padded = memory + bytes(8)
        # the eight bytes from each byte on, as a number
        self._words: Words = np.ndarray((len(memory) + 1,), "<u8", padded, 0, (1,))
        self._begin, self.end = begin, lengths
        self.length: Words = lengths.astype(np.uint64)

    def some(self, at: Any) -> _Texts:
        """Return the strings with these numbers."""
        chosen = copy(self)
        chosen._begin, chosen.end, chosen.length = self._begin[at], self.end[at], self.length[at]
        return chosen

    def word(self, start: Any, size: int = 8) -> Words:
        """Return the little-endian number in ``size`` bytes from ``start`` on, per string."""
        words: Words = self._words[self._begin + start].astype(np.uint64)
        return words if size == 8 else words & np.uint64((1 << 8 * size) - 1)

    def multiplier(self) -> Words:
        """Return the multiplier of most steps."""
        return _K2 + self.length * np.uint64(2)


def _rotate(words: Words, by: int) -> Words:
    """Return the words rotated to the right."""
    return (words >> np.uint64(by)) | (words << np.uint64(64 - by))


def _fold(words: Words) -> Words:
    return words ^ (words >> np.uint64(47))


def _mix(a: Words, b: Words, multiplier: Words) -> Words:
    """Return a 64-bit hash of 128 bits."""
    first = _fold((a ^ b) * multiplier)
    return _fold((b ^ first) * multiplier) * multiplier


def _empty(texts: _Texts) -> Words:
    return np.full(len(texts.end), _K2)


def _hash_up_to_3(texts: _Texts) -> Words:
    first, middle, last = (texts.word(at, 1) for at in (0, texts.end >> 1, texts.end - 1))
    y = first + (middle << np.uint64(8))
    z = texts.length + (last << np.uint64(2))
    return _fold((y * _K2) ^ (z * _K0)) * _K2


def _hash_up_to_7(texts: _Texts) -> Words:
    head = (texts.word(0, 4) << np.uint64(3)) + texts.length
    return _mix(head, texts.word(texts.end - 4, 4), texts.multiplier())


def _hash_up_to_16(texts: _Texts) -> Words:
    multiplier = texts.multiplier()
    a, b = texts.word(0) + _K2, texts.word(texts.end - 8)
    c = _rotate(b, 37) * multiplier + a
    d = (_rotate(a, 25) + b) * multiplier
    return _mix(c, d, multiplier)


def _sum_two_ends(texts: _Texts, factor: np.uint64) -> tuple[Words, Words, Words]:
    """Return two sums over the first and last 16 bytes, and the first word times ``factor``."""
    multiplier = texts.multiplier()
    a, b = texts.word(0) * factor, texts.word(8)
    c, d = texts.word(texts.end - 8) * multiplier, texts.word(texts.end - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    return y, a + _rotate(b + _K2, 18) + c, a


def _hash_up_to_32(texts: _Texts) -> Words:
    y, rest, _ = _sum_two_ends(texts, _K1)
    return _mix(y, rest, texts.multiplier())


def _hash_up_to_64(texts: _Texts) -> Words:
    multiplier = texts.multiplier()
    y, rest, a = _sum_two_ends(texts, _K2)
    z = _mix(y, rest, multiplier)
    e, f = texts.word(16) * multiplier, texts.word(24)
    g = (y + texts.word(texts.end - 32)) * multiplier
    h = (z + texts.word(texts.end - 24)) * multiplier
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


def _hash_pair(texts: _Texts, at: Any, a: Words, b: Words) -> tuple[Words, Words]:
    """Return a 128-bit hash of the 32 bytes from ``at`` on and two seeds."""
    w, x, y, z = (texts.word(at + step) for step in (0, 8, 16, 24))
    a = a + w
    b = _rotate(b + a + z, 21)
    total = a + x + y
    return total + z, b + _rotate(total, 44) + a


def _hash_longer(texts: _Texts, blocks: int) -> Words:
    count = len(texts.end)
    v = w = (np.zeros(count, np.uint64), np.zeros(count, np.uint64))
    start = _SEED * _K1 + np.uint64(113)
    x = _SEED * _K2 + texts.word(0)
    y = np.full(count, start)
    z = np.full(count, _fold(np.array([start * _K2 + np.uint64(113)]))[0] * _K2)
    state = (x, y, z, v, w)
    for block in range(blocks):
        state = _mix_block(texts, 64 * block, state, _K1, last=False)
    x, y, z, v, w = state
    multiplier = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    # The last 64 bytes may overlap the blocks before.
    w0 = w[0] + ((texts.length - np.uint64(1)) & np.uint64(63))
    v0 = v[0] + w0
    state = (x, y, z, (v0, v[1]), (w0 + v0, w[1]))
    x, y, z, v, w = _mix_block(texts, texts.end - 64, state, multiplier, last=True)
    first = _mix(v[0], w[0], multiplier) + _fold(y) * _K0 + z
    return _mix(first, _mix(v[1], w[1], multiplier) + x, multiplier)


def _mix_block(texts: _Texts, at: Any, state: Any, multiplier: Any, *, last: bool) -> Any:
    """Mix in the 64 bytes from ``at`` on."""
    x, y, z, v, w = state
    nine = np.uint64(9 if last else 1)
    x = _rotate(x + y + v[0] + texts.word(at + 8), 37) * multiplier
    y = _rotate(y + v[1] + texts.word(at + 48), 42) * multiplier
    x = x ^ (w[1] * nine)
    y = y + v[0] * nine + texts.word(at + 40)
    z = _rotate(z + w[0], 33) * multiplier
    v = _hash_pair(texts, at, v[1] * multiplier, x + w[0])
    w = _hash_pair(texts, at + 32, z + w[1], y + texts.word(at + 16))
    return z, y, x, v, w
