"""Cases for strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import strings as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _texts(*values: Any) -> Array:
    dtype = np.dtypes.StringDType()
    return np.array(values, dtype=dtype) if values else np.empty(0, dtype)


def _numbers(*values: int, dtype: str = "int32") -> Array:
    return np.array(values, dtype=dtype)


_LONG = ("lorem " * 11 + "a", "lorem " * 11 + "b", "ipsum, dolor; " * 30 + "x.")
"""Texts of more than 64 and of more than 256 bytes."""

_LETTERS = _texts("a", "bb", "", "dä", "e", "f")
_PLAIN = {
    "separator": "|",
    "n_gram_widths": [3],
    "left_pad": "LP",
    "right_pad": "RP",
    "pad_width": -1,
    "preserve_short_sequences": False,
}
_SPLITS = {
    "two rows": (0, 4, 6),
    "an empty row": (0, 4, 4, 6),
    "three rows": (0, 1, 4, 6),
    "one row": (0, 6),
}
_WIDTHS = ([3], [1], [2, 3], [4, 3], [5], [9])


@cases.of(specs.STRING_N_GRAMS, oracle=oracle.n_grams)
def string_n_grams(corpus: Corpus) -> Iterator[Case]:
    """Padding of a given width, the greatest width, or none; rows that are too short."""
    for name, splits in _SPLITS.items():
        for widths in _WIDTHS:
            for pad in (-1, 0, 1, 4):
                for short in (False, True):
                    how = {
                        **_PLAIN,
                        "n_gram_widths": widths,
                        "pad_width": pad,
                        "preserve_short_sequences": short,
                    }
                    label = f"{name}, {widths}, {pad} wide{', short' * short}"
                    yield Case(label, (_LETTERS, _numbers(*splits)), how)
    other = {**_PLAIN, "separator": "", "left_pad": "", "right_pad": "ü "}
    yield Case("other texts", (_LETTERS, _numbers(0, 4, 6)), other)
    long = {"separator": _LONG[0], "left_pad": _LONG[1], "right_pad": _LONG[2]}
    yield Case("long texts", (_texts(*_LONG, "a", *_LONG), _numbers(0, 3, 7)), {**_PLAIN, **long})
    single = (_texts("a|b", "b|c"), _numbers(0, 2))
    how = {**_PLAIN, "n_gram_widths": 2, "pad_width": 0}
    yield Case("one width", (_texts("a", "b", "c"), _numbers(0, 3)), how, expected=single)
    yield Case("int64", (_LETTERS, _numbers(0, 2, 6, dtype="int64")), _PLAIN)
    yield Case("nothing", (_texts(), _numbers()), _PLAIN)
    yield Case("empty rows", (_texts(), _numbers(0, 0, 0)), _PLAIN)
    ends = np.sort(corpus.indices((999,), LARGE))
    many = np.concatenate([[0], ends, [LARGE]]).astype(np.int32)
    yield Case("large", (corpus.ordinary((LARGE,)), many), {**_PLAIN, "n_gram_widths": [2, 3]})
    for name, splits in (
        ("first split", (1, 6)),
        ("last split", (0, 5)),
        ("past the end", (0, 7)),
        ("descending", (0, 5, 2, 6)),
    ):
        yield Case(name, (_LETTERS, _numbers(*splits)), _PLAIN, expected=ArgumentError)
    for name, wrong in (
        ("width 0", {"n_gram_widths": [2, 0]}),
        ("no width", {"n_gram_widths": []}),
        ("no text", {"separator": 1}),
    ):
        yield Case(name, (_LETTERS, _numbers(0, 6)), {**_PLAIN, **wrong}, expected=ArgumentError)
    yield Case("rank 2", (_LETTERS[None], _numbers(0, 1)), _PLAIN, expected=ShapeError)


_LINES = _texts("a b  c", "", "xyz", " ", "ä, b;c ", "雨 雪", "a.b-c]d^e")


@cases.of(specs.STRING_SPLIT, oracle=oracle.split)
def string_split(corpus: Corpus) -> Iterator[Case]:
    """No delimiter, one, several, and special characters of patterns."""
    for delimiter in ("", " ", "x", "ä", " ,", "-]^.", "雨ä"):
        for skip in (True, False):
            name = f"by {delimiter!r}{'' if skip else ', all'}"
            yield Case(name, (_LINES, _texts(delimiter).reshape(())), {"skip_empty": skip})
    for delimiter in (" ", ";.", _LONG[0]):
        long = (_texts(*_LONG, "".join(_LONG)), _texts(delimiter).reshape(()))
        yield Case(f"long texts by {delimiter!r}"[:30], long)
    space = _texts(" ").reshape(())
    yield Case("default", (_LINES, space))
    yield Case("nothing", (_texts(), space))
    yield Case("empty texts", (_texts("", ""), space), {"skip_empty": False})
    yield Case("large", (corpus.ordinary((LARGE,)), space))
    yield Case("rank 2", (_LINES[None], space), expected=ShapeError)
    yield Case("delimiters", (_LINES, _texts(" ")), expected=ShapeError)
    yield Case("numbers", (_numbers(1), space), expected=DTypeError)


_MANY = {"num_buckets": 2**31 - 1}


@cases.of(specs.STRING_TO_HASH_BUCKET_FAST, oracle=oracle.hash_bucket)
def string_to_hash_bucket_fast(corpus: Corpus) -> Iterator[Case]:
    """Texts of every length at which the hash takes another way; long ones differ late."""
    texts = _texts(*("äx" * 6)[:6], *("abcdefghijklmnop"[:n] for n in range(17)), "雨雪", "\0")
    for buckets in (1, 2, 10, 1000, 2**31 - 1, 2**31):
        yield Case(f"{buckets} buckets", (texts,), {"num_buckets": buckets})
    yield Case("rank 0", (_texts("a").reshape(()),), {"num_buckets": 7})
    yield Case("rank 3", (texts[:12].reshape(2, 3, 2),), {"num_buckets": 7})
    yield Case("rank 5", (texts[:12].reshape(1, 2, 3, 1, 2),), {"num_buckets": 7})
    yield Case("nothing", (_texts(),), {"num_buckets": 7})
    yield Case("large", (texts[corpus.indices((LARGE,), len(texts))],), {"num_buckets": 99})
    lengths = (16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 66, 127, 128, 129, 192, 200, 1027)
    lines = [("abcdefghijklmnopqrstuvwxyz, äöü" * 40)[:n] for n in lengths]
    last = [f"{line[:-1]}{end}" for line in lines for end in "!?"]
    yield Case("long", (_texts(*lines, *last, *(f"{line}.{line}" for line in lines)),), _MANY)
    yield Case("long, of any words", (corpus.edges(),), _MANY)
    for wrong in (0, -1, 2**31 + 1):
        yield Case(f"{wrong}", (texts,), {"num_buckets": wrong}, expected=ArgumentError)


_PATTERNS: tuple[tuple[str, str], ...] = (  # pattern, rewrite
    ("b", "<>"),
    ("(a|b)(c?)", r"[\2\1\0]"),
    (r"\s+", " "),
    ("x*", "-"),
    ("^.", ""),
    ("(?i)A", r"\\"),
    (r"\w", r"\0\0"),
    ("(a)|z", r"\1"),
    ("", "."),
)


@cases.of(specs.STATIC_REGEX_REPLACE, oracle=oracle.replaced)
def static_regex_replace(corpus: Corpus) -> Iterator[Case]:
    """Groups, empty matches, ASCII-only patterns."""
    texts = _texts("abc ab", "", "xxaxx", "zwölf  A", "雨\tz", "b\nb")
    for pattern, rewrite in _PATTERNS:
        how: dict[str, Any] = {"pattern": pattern, "rewrite": rewrite}
        yield Case(f"{pattern!r}", (texts,), how)
        yield Case(f"{pattern!r} once", (texts,), {**how, "replace_global": False})
    for pattern, rewrite in (("[ab]$", "!"), (r"(i\w+) *", r"\1_\1"), (_LONG[1], _LONG[2])):
        how = {"pattern": pattern, "rewrite": rewrite}
        yield Case(f"long texts, {pattern!r}"[:30], (_texts(*_LONG, "".join(_LONG)),), how)
    how = {"pattern": "a", "rewrite": "b"}
    yield Case("rank 0", (_texts("aa").reshape(()),), how)
    yield Case("rank 2", (texts.reshape(2, 3),), how)
    yield Case("rank 5", (texts.reshape(1, 2, 1, 3, 1),), how)
    yield Case("nothing", (np.empty((0, 2), texts.dtype),), how)
    yield Case("large", (corpus.ordinary((LARGE,)),), {"pattern": "w(.)", "rewrite": r"\1w"})
    wrong: tuple[tuple[Any, Any], ...] = (
        ("(", ""),
        ("a", r"\1"),
        ("a", "\\"),
        ("a", r"\n"),
        ("[[:alpha:]]", ""),
        (1, ""),
        ("a", None),
    )
    for bad, instead in wrong:
        how = {"pattern": bad, "rewrite": instead}
        yield Case(f"wrong: {bad!r}, {instead!r}", (texts,), how, expected=ArgumentError)
