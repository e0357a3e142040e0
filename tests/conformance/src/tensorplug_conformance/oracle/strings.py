"""References for strings: Python's own, one text after the other; FarmHash on its integers.

Source of the fingerprint: G. Pike, FarmHash, ``farmhashna::Hash64``.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array

_TEXT: Final = np.dtypes.StringDType()
_MASK: Final = 2**64 - 1
_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F


def _texts(values: list[str]) -> Array:
    return np.array(values, dtype=_TEXT) if values else np.empty(0, _TEXT)


def n_grams(
    data: Array,
    data_splits: Array,
    *,
    separator: str,
    n_gram_widths: list[int],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
) -> tuple[Array, Array]:
    """Slide a window over the padded words of each row."""
    words, places = data.tolist(), data_splits.tolist()
    if not words or not places:
        return _texts([]), np.zeros_like(data_splits)
    texts: list[str] = []
    ends = [0]
    for first, last in pairwise(places):
        row = words[first:last]
        before = len(texts)
        for width in n_gram_widths:
            pad = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            padded = [left_pad] * pad + row + [right_pad] * pad
            texts += [
                separator.join(padded[at : at + width]) for at in range(len(padded) - width + 1)
            ]
        if preserve_short_sequences and row and len(texts) == before:
            texts.append(separator.join([left_pad] * pad_width + row + [right_pad] * pad_width))
        ends.append(len(texts))
    return _texts(texts), np.array(ends, dtype=data_splits.dtype)


def split(
    input: Array,
    delimiter: Array,
    *,
    skip_empty: bool = True,
) -> tuple[Array, Array, Array]:
    """Read each text character by character."""
    at = delimiter.item()
    rows = []
    for text in input.tolist():
        parts = [""] if text else []
        for character in text:
            if at and character in at:
                parts.append("")
            elif at or not parts[-1]:
                parts[-1] += character
            else:
                parts.append(character)
        rows.append([part for part in parts if part or not skip_empty])
    places = [[row, column] for row, parts in enumerate(rows) for column in range(len(parts))]
    return (
        np.array(places, dtype=np.int32).reshape(-1, 2),
        _texts([part for parts in rows for part in parts]),
        np.array([len(rows), max(map(len, rows), default=0)], dtype=np.int32),
    )


def hash_bucket(input: Array, *, num_buckets: int) -> Array:
    """Return the fingerprint modulo the number of buckets."""
    items = [_fingerprint(text.encode()) % num_buckets for text in input.ravel().tolist()]
    return np.array(items, dtype=np.int32).reshape(input.shape)


def _fingerprint(text: bytes) -> int:
    size = len(text)
    if not size:
        return _K2
    if size < 4:
        y = text[0] + (text[size >> 1] << 8)
        z = size + (text[-1] << 2)
        return _shifted((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    factor = _K2 + 2 * size
    if size < 8:
        head = size + (int.from_bytes(text[:4], "little") << 3)
        return _mixed(head, int.from_bytes(text[-4:], "little"), factor)
    if size <= 16:
        a = int.from_bytes(text[:8], "little") + _K2 & _MASK
        b = int.from_bytes(text[-8:], "little")
        c = _rotated(b, 37) * factor + a & _MASK
        return _mixed(c, (_rotated(a, 25) + b) * factor & _MASK, factor)
    if size <= 64:
        return (_of_two_words if size <= 32 else _of_four_words)(text, factor)
    return _of_blocks(text)


def _word(text: bytes, at: int) -> int:
    """Return the eight bytes from ``at`` on, or from so many before the end."""
    begin = at % len(text)
    return int.from_bytes(text[begin : begin + 8], "little")


def _of_two_words(text: bytes, factor: int) -> int:
    """Return the fingerprint of 17 to 32 bytes."""
    a, b = _word(text, 0) * _K1 & _MASK, _word(text, 8)
    c, d = _word(text, -8) * factor & _MASK, _word(text, -16) * _K2 & _MASK
    first = _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d
    return _mixed(first & _MASK, a + _rotated(b + _K2 & _MASK, 18) + c & _MASK, factor)


def _of_four_words(text: bytes, factor: int) -> int:
    """Return the fingerprint of 33 to 64 bytes."""
    a, b = _word(text, 0) * _K2 & _MASK, _word(text, 8)
    c, d = _word(text, -8) * factor & _MASK, _word(text, -16) * _K2 & _MASK
    y = _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d & _MASK
    z = _mixed(y, a + _rotated(b + _K2 & _MASK, 18) + c & _MASK, factor)
    e, f = _word(text, 16) * factor & _MASK, _word(text, 24)
    g, h = (y + _word(text, -32)) * factor & _MASK, (z + _word(text, -24)) * factor & _MASK
    first = _rotated(e + f & _MASK, 43) + _rotated(g, 30) + h
    return _mixed(first & _MASK, e + _rotated(f + a & _MASK, 18) + g & _MASK, factor)


def _of_blocks(text: bytes) -> int:
    """Return the fingerprint of more than 64 bytes: of whole blocks of 64, then the last 64."""
    seed = 81
    x = seed
    y = seed * _K1 + 113 & _MASK
    z = _shifted(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(text, 0) & _MASK
    whole = (len(text) - 1) // 64 * 64
    for at in range(0, whole, 64):
        x = _rotated(x + y + v[0] + _word(text, at + 8) & _MASK, 37) * _K1 & _MASK
        y = _rotated(y + v[1] + _word(text, at + 48) & _MASK, 42) * _K1 & _MASK
        x ^= w[1]
        y = y + v[0] + _word(text, at + 40) & _MASK
        z = _rotated(z + w[0] & _MASK, 33) * _K1 & _MASK
        v = _weak(text, at, v[1] * _K1 & _MASK, x + w[0] & _MASK)
        w = _weak(text, at + 32, z + w[1] & _MASK, y + _word(text, at + 16) & _MASK)
        z, x = x, z
    factor = _K1 + ((z & 0xFF) << 1) & _MASK
    at = len(text) - 64
    w = w[0] + (len(text) - 1) % 64 & _MASK, w[1]
    v = v[0] + w[0] & _MASK, v[1]
    w = w[0] + v[0] & _MASK, w[1]
    x = _rotated(x + y + v[0] + _word(text, at + 8) & _MASK, 37) * factor & _MASK
    y = _rotated(y + v[1] + _word(text, at + 48) & _MASK, 42) * factor & _MASK
    x ^= w[1] * 9 & _MASK
    y = y + v[0] * 9 + _word(text, at + 40) & _MASK
    z = _rotated(z + w[0] & _MASK, 33) * factor & _MASK
    v = _weak(text, at, v[1] * factor & _MASK, x + w[0] & _MASK)
    w = _weak(text, at + 32, z + w[1] & _MASK, y + _word(text, at + 16) & _MASK)
    z, x = x, z
    first = _mixed(v[0], w[0], factor) + _shifted(y) * _K0 + z & _MASK
    return _mixed(first, _mixed(v[1], w[1], factor) + x & _MASK, factor)


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Return 16 bytes that depend on 32 bytes of the text and two seeds."""
    first, second, third, fourth = (_word(text, at + 8 * n) for n in range(4))
    a = a + first & _MASK
    b = _rotated(b + a + fourth & _MASK, 21)
    whole = a + second + third & _MASK
    return whole + fourth & _MASK, b + _rotated(whole, 44) + a & _MASK


def _shifted(word: int) -> int:
    return word ^ (word >> 47)


def _rotated(word: int, by: int) -> int:
    return (word >> by | word << (64 - by)) & _MASK


def _mixed(a: int, b: int, factor: int) -> int:
    first = _shifted((a ^ b) * factor & _MASK)
    return _shifted((b ^ first) * factor & _MASK) * factor & _MASK


def replaced(x: Array, *, pattern: str, rewrite: str, replace_global: bool = True) -> Array:
    """Go from match to match, and build the replacement from the groups."""
    texts = []
    for text in x.ravel().tolist():
        done, result = 0, ""
        for match in re.finditer(pattern, text, re.ASCII):
            result += text[done : match.start()] + _filled(rewrite, match)
            done = match.end()
            if not replace_global:
                break
        texts.append(result + text[done:])
    return _texts(texts).reshape(x.shape)


def _filled(rewrite: str, match: re.Match[str]) -> str:
    signs = iter(rewrite)
    result = ""
    for sign in signs:
        if sign != "\\":
            result += sign
            continue
        after = next(signs)
        result += "\\" if after == "\\" else match[int(after)] or ""
    return result
