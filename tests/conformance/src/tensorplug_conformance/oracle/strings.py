"""References for strings: Python's own, one text after the other; FarmHash on its integers.

Source of the fingerprint: G. Pike, FarmHash, ``farmhashna::Hash64``, for up to 16 bytes.
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
    found: list[str] = []
    ends = [0]
    for first, last in pairwise(places):
        row = words[first:last]
        before = len(found)
        for width in n_gram_widths:
            pad = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            padded = [left_pad] * pad + row + [right_pad] * pad
            found += [
                separator.join(padded[at : at + width]) for at in range(len(padded) - width + 1)
            ]
        if preserve_short_sequences and row and len(found) == before:
            found.append(separator.join([left_pad] * pad_width + row + [right_pad] * pad_width))
        ends.append(len(found))
    return _texts(found), np.array(ends, dtype=data_splits.dtype)


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
    found = [_fingerprint(text.encode()) % num_buckets for text in input.ravel().tolist()]
    return np.array(found, dtype=np.int32).reshape(input.shape)


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
    if size > 16:
        raise ValueError("this reference knows fingerprints of up to 16 bytes")
    a = int.from_bytes(text[:8], "little") + _K2 & _MASK
    b = int.from_bytes(text[-8:], "little")
    c = _rotated(b, 37) * factor + a & _MASK
    return _mixed(c, (_rotated(a, 25) + b) * factor & _MASK, factor)


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
