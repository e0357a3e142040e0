"""Operators on text, which is on the host: arrays of NumPy's StringDType."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.patterns import to_python
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import as_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

_TEXT = np.dtypes.StringDType()


def texts(values: Sequence[str], shape: Sequence[int]) -> Any:
    """Return an array of text."""
    return np.array(values, _TEXT).reshape(tuple(shape))


@rule("StringConcat", host=None)
def concatenate(x: Any, y: Any) -> Any:
    return np.strings.add(x, y)


@rule("StringSplit", host=None)
def split(x: Any, *, delimiter: str = "", maxsplit: int = -1) -> Any:
    """Without a delimiter, at white space, and none is left at the ends."""
    parts = [
        text.split(delimiter, maxsplit) if delimiter else text.strip().split(None, maxsplit)
        for text in x.flat
    ]
    counts = np.array([len(one) for one in parts], np.int64).reshape(x.shape)
    most = int(counts.max(initial=0))
    rows = [part for one in parts for part in (*one, *[""] * (most - len(one)))]
    return texts(rows, (*x.shape, most)), counts


@rule("RegexFullMatch", host=None)
def full_match(x: Any, *, pattern: str) -> Any:
    try:
        compiled = re.compile(to_python(pattern))
    except re.error as error:
        raise ValueError(f"pattern {pattern!r}: {error}") from error
    found = [compiled.fullmatch(text) is not None for text in x.flat]
    return np.array(found, np.bool).reshape(x.shape)


@rule("StringNormalizer", host=None)
def normalize(
    x: Any,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Any:
    if x.ndim not in (1, 2) or (x.ndim == 2 and len(x) != 1):
        raise ValueError(f"the shape must be [C] or [1, C], got {list(x.shape)}")
    changes: dict[str, Callable[[str], str]]
    changes = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes[case_change_action]
    if locale[:2] in ("az", "lt", "tr") and change is not str:
        raise UnsupportedError(f"StringNormalizer: upper and lower case of locale {locale!r}")
    compared: Callable[[str], str] = str if is_case_sensitive else str.lower
    stops = {compared(word) for word in stopwords}
    kept = [change(word) for word in x.flat if compared(word) not in stops] or [""]
    return texts(kept, (*x.shape[:-1], len(kept)))


@rule("TfIdfVectorizer")
def tf_idf(
    x: Any,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] = (),
    xp: ModuleType,
) -> Any:
    """The weights are in the order of the results, as in ONNX's reference and onnxruntime."""
    pool: Sequence[int] = pool_int64s
    if pool_strings:
        numbers = {word: at for at, word in enumerate(dict.fromkeys(pool_strings))}
        pool = [numbers[word] for word in pool_strings]
        found = [numbers.get(word, -1) for word in as_host(x).flat]
        x, xp = np.array(found, np.int64).reshape(x.shape), np
    size = max(ngram_indexes) + 1
    counts: list[Any] = []
    for length, (begin, end) in enumerate(pairwise((*ngram_counts, len(pool))), 1):
        grams = np.array(pool[begin:end], np.int64).reshape(-1, length)
        counted = min_gram_length <= length <= max_gram_length
        most = (max_skip_count if length > 1 else 0) + 1 if counted else 0
        total = xp.zeros((*x.shape[:-1], len(grams)), dtype=xp.float32)
        for step in range(1, most + 1):
            total = total + _occurrences(x, grams, step, xp)
        counts.append(total)
    every = xp.concat(counts, axis=-1)
    if sorted(ngram_indexes) == list(range(size)):
        every = xp.take(every, xp.asarray(np.argsort(ngram_indexes)), axis=-1)
    else:  # coordinates without an n-gram, or with several
        places = np.zeros((len(ngram_indexes), size), np.float32)
        places[np.arange(len(ngram_indexes)), np.array(ngram_indexes)] = 1
        every = xp.matmul(every, xp.asarray(places))
    if mode == "IDF":
        every = xp.astype(every > 0, xp.float32)
    if mode == "TF" or not weights:
        return every
    return every * xp.asarray(np.array(weights, np.float32))


def _occurrences(x: Any, grams: Any, step: int, xp: ModuleType) -> Any:
    """Return how often each n-gram is in x, with its elements ``step`` apart."""
    length = grams.shape[1]
    starts = int(x.shape[-1]) - (length - 1) * step
    if starts <= 0:
        return xp.zeros((*x.shape[:-1], len(grams)), dtype=xp.float32)
    hits = None
    for at in range(length):
        part = x[..., None, at * step : at * step + starts]
        equal = part == xp.asarray(grams[:, at : at + 1].astype(str(x.dtype)))
        hits = equal if hits is None else xp.logical_and(hits, equal)
    return xp.sum(xp.astype(hits, xp.float32), axis=-1)
