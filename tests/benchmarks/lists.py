"""Strings, ragged and sparse tensors, boxes and small lists, and an expression for each.

NumPy has no expression for most of them, so they are written in plain Python.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from expressions import made, rng, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expressions import Array, Row


TEXT = np.dtypes.StringDType()


def lists() -> Iterator[Row]:
    """Yield the rows."""
    yield row(
        "BroadcastArgs",
        lambda a, b: np.array(np.broadcast_shapes(tuple(a), tuple(b))),
        lambda _n, _d: [np.array([3, 1], np.int32), np.array([1, 4], np.int32)],
        "s",
    )
    yield from _boxes()
    yield from _strings()
    yield from _ragged()
    yield from _sparse()


def _boxes() -> Iterator[Row]:
    def scored(size: int, _dtype: str) -> list[Array]:
        count = min(size, 1000)
        corners = rng.random((count, 2)).astype(np.float32)
        return [np.hstack([corners, corners + 0.1]), rng.random(count).astype(np.float32)]

    for version in "345":
        yield row(f"NonMaxSuppressionV{version}", _kept, scored, max_output_size=20)


def _kept(boxes: Array, scores: Array) -> list[Any]:
    order, kept = np.argsort(-scores), []
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    while len(order) and len(kept) < 20:
        first, order = order[0], order[1:]
        kept.append(first)
        low = np.maximum(boxes[first, :2], boxes[order, :2])
        high = np.minimum(boxes[first, 2:], boxes[order, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        order = order[common / (areas[first] + areas[order] - common) <= 0.5]
    return kept


def _words(size: int, _dtype: str) -> list[Array]:
    count = min(size, 1 << 14)
    words = [f"word {number} of it" for number in rng.integers(0, 1000, count)]
    return [np.array(words, np.dtypes.StringDType())]


def _strings() -> Iterator[Row]:
    yield row(
        "StringSplit",
        _parted,
        lambda n, d: [*_words(n, d), np.array(" ", np.dtypes.StringDType())],
        "s",
    )
    yield row(
        "StaticRegexReplace",
        lambda x: np.array([re.sub("[0-9]+", "#", text) for text in x.tolist()], TEXT),
        _words,
        "s",
        pattern="[0-9]+",
        rewrite="#",
    )
    yield row(
        "StringToHashBucketFast",
        lambda x: np.array([_stable(text) % 100 for text in x.tolist()]),
        _words,
        "s",
        num_buckets=100,
    )
    yield row(
        "StringNGrams",
        _pairs,
        lambda n, d: [*_words(n, d), _splits(min(n, 1 << 14))],
        "s",
        separator="|",
        n_gram_widths=(2,),
        left_pad="",
        right_pad="",
        pad_width=0,
        preserve_short_sequences=False,
    )


def _stable(text: str) -> int:
    """Return a hash that is the same in every process, the quickest in Python."""
    return crc32(text.encode())


def _parted(texts: Array, _delimiter: Array) -> tuple[Array, Array]:
    rows = [text.split(" ") for text in texts.tolist()]
    down = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    right = np.array([place for row in rows for place in range(len(row))])
    return np.stack([down, right], 1), np.array([part for row in rows for part in row], TEXT)


def _splits(count: int, width: int = 8) -> Array:
    return np.arange(0, count + 1, width, dtype=np.int32)


def _pairs(data: Array, splits: Array) -> Array:
    words, edges = data.tolist(), splits.tolist()
    pairs = [
        f"{words[at]}|{words[at + 1]}"
        for start, stop in pairwise(edges)
        for at in range(start, stop - 1)
    ]
    return np.array(pairs, TEXT)


def _ragged() -> Iterator[Row]:
    def rows(size: int, dtype: str) -> list[Any]:
        at = rng.permutation(size // 8).astype(np.int32)
        return [[_splits(size)], made("unit", size, dtype), at]

    def ends(size: int, _dtype: str) -> list[Array]:
        starts = rng.integers(0, 100, size // 8).astype(np.int32)
        return [starts, starts + 8, np.ones_like(starts)]

    def dense(size: int, dtype: str) -> list[Any]:
        values, default = made("unit", size, dtype), made("unit", (), dtype)
        return [np.array([size // 8, 8], np.int32), values, default, [_splits(size)]]

    yield row("RaggedGather", _taken, rows)
    yield row("RaggedRange", _ranges, ends, "i")
    yield row("RaggedTensorToTensor", _filled, dense, "f", "", row_partition_types=("ROW_SPLITS",))


def _taken(splits: list[Array], values: Array, at: Array) -> Array:
    first, last = splits[0][:-1][at], splits[0][1:][at]
    return np.concatenate(
        [values[i:j] for i, j in zip(first.tolist(), last.tolist(), strict=True)]
    )


def _ranges(*ends: Array) -> Array:
    return np.concatenate([np.arange(*bounds) for bounds in zip(*ends, strict=True)])


def _filled(shape: Array, values: Array, default: Array, splits: list[Array]) -> Array:
    result = np.full(tuple(shape), default)
    lengths = np.diff(splits[0])
    result[np.arange(shape[1]) < lengths[:, None]] = values
    return result


def _sparse() -> Iterator[Row]:
    def some(size: int, dtype: str) -> list[Array]:
        rows = np.arange(0, size // 4 * 2, 2, dtype=np.int32)
        at = np.stack([rows, np.zeros_like(rows)], axis=1)
        shape = np.array([size // 4 * 2, 3], np.int32)
        return [at, made("unit", len(rows), dtype), shape, made("unit", (), dtype)]

    def segments(size: int, dtype: str) -> list[Array]:
        count = size // 16
        at = rng.integers(0, count, count).astype(np.int32)
        return [made("unit", (count, 16), dtype), at, np.arange(count, dtype=np.int32) // 4]

    yield row("SparseFillEmptyRows", _without_gaps, some)
    yield row(
        "SparseReshape",
        _reshaped,
        lambda n, d: [*some(n, d)[::2], np.array([3, n // 4 * 2], np.int32)],
    )
    yield row("SparseSegmentSum", lambda x, at, to: np.add.reduceat(x[at], _firsts(to)), segments)
    yield row(
        "SparseSegmentMean",
        lambda x, at, to: (
            np.add.reduceat(x[at], _firsts(to)) / np.bincount(to)[:, None].astype(x.dtype)
        ),
        segments,
    )


def _firsts(segments: Array) -> Array:
    return np.flatnonzero(np.diff(segments, prepend=-1))


def _without_gaps(at: Array, values: Array, shape: Array, default: Array) -> tuple[Array, Array]:
    empty = np.setdiff1d(np.arange(shape[0]), at[:, 0])
    added = np.stack([empty, np.zeros_like(empty)], axis=1)
    places = np.concatenate([at, added])
    order = np.argsort(places[:, 0], kind="stable")
    return places[order], np.concatenate([values, np.full(len(empty), default)])[order]


def _reshaped(at: Array, old: Array, new: Array) -> Array:
    flat = np.ravel_multi_index(tuple(at.T), tuple(old))
    return np.stack(np.unravel_index(flat, tuple(new)), axis=1)
