"""Strings: splitting, n-grams, regular expressions, hash buckets."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.errors import ArgumentError
from tensorplug.host_functions.ascending import check_ascending
from tensorplug.host_functions.fingerprints import fingerprints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["compiled", "hash_bucket", "n_grams", "replaced", "replacement", "split", "template"]

Array = np.ndarray[Any, Any]

TEXT: Final = np.dtypes.StringDType()


def _array(texts: Sequence[str]) -> Array:
    return np.array(texts, dtype=TEXT) if len(texts) else np.empty(0, TEXT)


def hash_bucket(input: Array, *, num_buckets: int) -> Array:
    """Return the fingerprint of each string's UTF-8 bytes, modulo ``num_buckets``."""
    hashed = fingerprints([text.encode() for text in input.reshape(-1).tolist()])
    return (hashed % np.uint64(num_buckets)).astype(np.int32).reshape(input.shape)


# Splitting ---------------------------------------------------------------------------------


def split(
    input: Array,
    delimiter: Array,
    *,
    skip_empty: bool,
) -> tuple[Array, Array, Array]:
    """Return coordinates, parts and shape of the sparse table whose rows are the strings' parts.

    It handles strings one by one with ``str`` and ``re``; NumPy's functions do no better.
    """
    parts, lengths = _split(input.tolist(), delimiter.item(), skip_empty=skip_empty)
    ends = np.cumsum(lengths)
    total = len(parts)
    coordinates = np.empty((total, 2), np.int32)
    coordinates[:, 0] = np.repeat(np.arange(len(lengths)), lengths)
    coordinates[:, 1] = np.arange(total) - np.repeat(ends - lengths, lengths)
    shape = np.array([len(lengths), lengths.max(initial=0)], np.int32)
    return coordinates, _array(parts), shape


def _split(texts: list[str], delimiter: str, *, skip_empty: bool) -> tuple[list[str], Array]:
    """Return the parts of all strings, and the number of parts of each."""
    if len(delimiter) == 1:
        parts = delimiter.join(texts).split(delimiter)  # all strings at once
        if all(parts):  # an empty part may be an empty string, which has no parts
            counts = map(str.count, texts, repeat(delimiter))
            return parts, np.fromiter(counts, np.intp, len(texts)) + 1
    cut = _make_cutter(delimiter)
    rows = [cut(text) if text else [] for text in texts]
    if skip_empty:
        rows = [row if all(row) else [part for part in row if part] for row in rows]
    lengths = np.fromiter(map(len, rows), np.intp, len(rows))
    return list(chain.from_iterable(rows)), lengths


def _make_cutter(delimiter: str) -> Callable[[str], list[str]]:
    """Return a function that splits at each of the delimiter's characters, or everywhere."""
    if not delimiter:
        return list
    if len(delimiter) == 1:
        return lambda text: text.split(delimiter)
    return re.compile(f"[{re.escape(delimiter)}]").split


# N-grams -----------------------------------------------------------------------------------


def n_grams(
    data: Array,
    data_splits: Array,
    *,
    separator: str,
    n_gram_widths: tuple[int, ...],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
) -> tuple[Array, Array]:
    """Return the n-grams of each row, those of the first width first, and their row splits."""
    splits = _check_row_splits(data_splits, len(data))
    if not len(data) or not len(splits):
        return np.empty(0, TEXT), np.zeros_like(data_splits)
    lengths = np.diff(splits)
    words = np.array([*data.tolist(), left_pad, right_pad], dtype=object)
    parts = []  # for each width the rows' numbers of n-grams, and the n-grams
    for width in n_gram_widths:
        pad = width - 1 if pad_width < 0 else min(pad_width, width - 1)
        counts = np.maximum(lengths + 2 * pad - width + 1, 0)
        parts.append((counts, _join_grams(words, splits, counts, width, pad, separator)))
    total = sum((counts for counts, _ in parts), np.zeros_like(lengths))
    if preserve_short_sequences:
        short = (total == 0) & (lengths > 0)
        for length in sorted(set(lengths[short].tolist())):
            # The whole row with its padding is shorter than any n-gram.
            pad = max(pad_width, 0)
            counts = (short & (lengths == length)).astype(lengths.dtype)
            width = length + 2 * pad
            parts.append((counts, _join_grams(words, splits, counts, width, pad, separator)))
            total = total + counts
    ends = np.cumsum(total)
    row_splits = np.concatenate(([0], ends)).astype(data_splits.dtype)
    if len(parts) == 1:
        return parts[0][1], row_splits
    result = np.empty(int(ends[-1]) if len(ends) else 0, TEXT)
    start = ends - total
    for counts, grams in parts:
        first = np.cumsum(counts) - counts
        result[np.arange(len(grams)) + np.repeat(start - first, counts)] = grams
        start = start + counts
    return result, row_splits


def _check_row_splits(splits: Array, size: int) -> Array:
    if not splits.size:
        return splits.astype(np.intp)
    if splits[0] != 0 or splits[-1] != size:
        raise ArgumentError(
            f"data_splits must go from 0 to the number of strings, {size}, got {splits[0]} to "
            f"{splits[-1]}"
        )
    check_ascending(splits, "data_splits")
    return splits.astype(np.intp)


def _join_grams(
    words: Array, splits: Array, counts: Array, width: int, pad: int, separator: str
) -> Array:
    """Return ``counts`` n-grams of each row: windows over the padded row.

    ``words`` end with the two paddings. They are Python strings, because ``str.join`` takes half
    the time of NumPy's string addition.
    """
    total = int(counts.sum())
    number = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    start = np.repeat(splits[:-1], counts)
    end = np.repeat(splits[1:], counts)
    left = len(words) - 2
    columns = []
    for step in range(width):
        at = start + number + (step - pad)
        at = np.where(at < start, left, np.where(at >= end, left + 1, at))
        columns.append(words[at].tolist())
    return _array(list(map(separator.join, zip(*columns, strict=True))))


# Patterns ----------------------------------------------------------------------------------

_CLASS: Final = re.compile(r"\[:\^?[a-z]+:\]")
_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern.

    Raises:
        ArgumentError: it is not a regular expression of Python's ``re``.

    """
    if _CLASS.search(pattern):
        raise ArgumentError(
            f"pattern {pattern!r} contains a POSIX character class, which Python's re lacks; "
            r"write a range such as a-z, or \d, \s, \w"
        )
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ArgumentError(f"pattern {pattern!r}: {error}") from None


def template(pattern: re.Pattern[str], rewrite: str) -> str:
    r"""Return ``rewrite`` in Python's syntax; ``\1`` is a group, and ``\\`` a backslash.

    Raises:
        ArgumentError: it has another escape, or names a group that the pattern lacks.

    """

    def translated(match: re.Match[str]) -> str:
        sign = match[1]
        if sign == "\\":
            return r"\\"
        if not (sign.isascii() and sign.isdigit()):
            raise ArgumentError(
                rf"rewrite {rewrite!r}: after a \ there must be a digit or another \ "
            )
        if int(sign) > pattern.groups:
            raise ArgumentError(
                f"rewrite {rewrite!r} names group {sign}, but pattern {pattern.pattern!r} has "
                f"{pattern.groups}"
            )
        return rf"\g<{sign}>"

    return _ESCAPE.sub(translated, rewrite)


def replacement(pattern: str, rewrite: str, *, replace_global: bool) -> Callable[[Array], Array]:
    """Return a function that replaces all matches in each string, or the first one.

    It handles strings one by one, because NumPy has no regular expressions.
    """
    matcher = compiled(pattern)
    replace = partial(matcher.sub, template(matcher, rewrite), count=0 if replace_global else 1)

    def replaced(x: Array) -> Array:
        return _array([replace(text) for text in x.reshape(-1).tolist()]).reshape(x.shape)

    return replaced


def replaced(x: Array, *, pattern: str, rewrite: str, replace_global: bool) -> Array:
    """Return each string with its matches replaced."""
    return replacement(pattern, rewrite, replace_global=replace_global)(x)
