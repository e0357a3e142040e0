"""Strings: their own functions, ops that move or compare them, devices without any, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, FallbackWarning, ShapeError
from tensorplug.testing import isolated_engine

WORDS = ["a", "b", "c", "d", "e", "f"]


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    """Run natively, or on the host of a device that has no strings."""
    with isolated_engine(request.param), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield request.param


def expect(actual, expected, dtype="string"):
    assert (actual.dtype.name, actual.shape) == (dtype, np.shape(expected))
    assert actual.tolist() == np.asarray(expected).tolist()


GRAMS = {  # splits, widths, paddings and how wide, short rows; n-grams, splits
    "padded": (
        [0, 4, 6],
        [3],
        ("LP", "RP", -1, False),
        "LP|LP|a LP|a|b a|b|c b|c|d c|d|RP d|RP|RP LP|LP|e LP|e|f e|f|RP f|RP|RP",
        [0, 6, 10],
    ),
    "short": ([0, 4, 4, 6], [3], ("", "", 0, True), "a|b|c b|c|d e|f", [0, 2, 2, 3]),
}


@pytest.mark.parametrize("what", GRAMS)
def test_n_grams(what, backend):
    """TensorFlow.js's own cases."""
    splits, widths, options, grams, ends = GRAMS[what]
    found = tp.strings.string_n_grams(WORDS, splits, "|", widths, *options)
    assert found._fields == ("n_grams", "n_grams_splits")
    expect(found.n_grams, grams.split())
    if ends is not None:
        expect(found.n_grams_splits, ends, "int32")


SPLIT = {  # texts, delimiter, whether empty parts are left out; values, rows, shape
    "words": (
        ["hello world", "a  b"],
        " ",
        True,
        ["hello", "world", "a", "b"],
        [0, 0, 1, 1],
        [2, 2],
    ),
    "empty parts": (["a||b|", ""], "|", False, ["a", "", "b", ""], [0] * 4, [2, 4]),
}


@pytest.mark.parametrize("what", SPLIT)
def test_split(what, backend):
    texts, delimiter, skip, values, rows, shape = SPLIT[what]
    found = tp.strings.string_split(texts, delimiter, skip)
    assert found._fields == ("indices", "values", "shape")
    expect(found.values, values)
    expect(found.indices[:, 0], rows, "int32")
    expect(found.indices[:, 1], [rows[:at].count(row) for at, row in enumerate(rows)], "int32")
    expect(found.shape, shape, "int32")
    assert found.indices.device == backend


def test_patterns(backend):
    replace = tp.strings.static_regex_replace
    expect(replace(["this", "is, a"], "[aeiou]", "-"), ["th-s", "-s, -"])
    expect(replace(["aaa"], "a", "b", replace_global=False), ["baa"])
    expect(replace(["é1"], r"\w", "x"), ["éx"])  # as in RE2 and JavaScript
    assert replace("ab", "(a)|z", r"[\1]").item() == "[a]b"


BAD = {  # error: call, what the message says
    ArgumentError: [
        (
            lambda: tp.strings.string_n_grams(["a"], [0, 2], " ", 1),
            "data_splits must go from 0 to the number of strings, 1, got 0 to 2",
        ),
        (
            lambda: tp.strings.string_n_grams(["a"], [0, 1, 0, 1], " ", 1),
            "data_splits must be ascending, but element 2 is 0 after 1",
        ),
        (
            lambda: tp.strings.string_n_grams(["a"], [0, 1], " ", [0]),
            r"StringNGrams.*attribute 'n_gram_widths': must be one or more positive",
        ),
        (
            lambda: tp.strings.string_n_grams(["a"], [0, 1], 3, 1),
            "attribute 'separator': must be a string, got 3",
        ),
        (lambda: tp.strings.string_to_hash_bucket_fast(["a"], 0), "must be from 1 to"),
        (
            lambda: tp.strings.static_regex_replace(["a"], "(", ""),
            "attribute 'pattern': pattern '\\(': missing \\)",
        ),
        (
            lambda: tp.strings.static_regex_replace(["a"], "[[:alpha:]]", ""),
            "contains a POSIX character class",
        ),
        (
            lambda: tp.strings.static_regex_replace(["a"], "(a)", r"\2"),
            "names group 2, but pattern '\\(a\\)' has 1",
        ),
        (
            lambda: tp.strings.static_regex_replace(["a"], "a", r"\n"),
            "there must be a digit or another",
        ),
    ],
    ShapeError: [
        (lambda: tp.strings.string_split([["a"]], " "), "input must have rank 1"),
    ],
    DTypeError: [
        (lambda: tp.strings.string_split([1], " "), "must be one of string"),
    ],
}


test_bad_input = pytest.mark.usefixtures("on_the_cpu")(refused(BAD, regex=True))


N = np.array([["b", "a", "ä"], ["", "雨", "b"]])
TABLE = np.array([True, False, True])
OPS = {  # a call, what NumPy makes of it
    "less": (lambda t: t < "b", N < "b"),
    "concat": (lambda t: tp.concat([t, t], axis=1), np.concatenate([N, N], 1)),
    "gather": (lambda t: tp.gather(t, [2, 0], axis=1), N[:, [2, 0]]),
    "unique": (tp.unique_values, np.array(["b", "a", "ä", "", "雨"])),
    "select": (lambda t: tp.where(TABLE, t, t[:, ::-1]), np.where(TABLE, N, N[:, ::-1])),
    "mask": (lambda t: t[t == "b"], N[N == "b"]),
    "pad": (
        lambda t: tp.pad(t, [(1, 0), (0, 1)], "x"),
        np.pad(N, [(1, 0), (0, 1)], constant_values="x"),
    ),
    "full": (lambda _: tp.full((2,), "x"), np.array(["x", "x"])),
}


@pytest.mark.parametrize("what", OPS)
def test_other_ops(what, backend):
    call, expected = OPS[what]
    found = call(tp.asarray(N))
    dtype = {"U": "string", "b": "bool", "i": "int32"}[expected.dtype.kind]
    expect(found, expected, dtype)
    assert found.device == ("host" if dtype == "string" and backend == "minimal" else backend)


def test_a_text_beside_numbers_is_foreign(backend):
    numbers = tp.asarray([1.0])
    assert (numbers == "a") is False
    with pytest.raises(TypeError, match="not supported between"):
        numbers < "a"  # noqa: B015  # it raises
    with pytest.raises(DTypeError, match="string"):
        tp.equal(numbers, "a")


def test_a_fallback_warns_once_of_each_kernel():
    with isolated_engine("minimal") as engine:
        text = tp.asarray(["a", "b"])
        assert tp.explain("Equal", [text, text]).how == "fallback"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                expect(tp.concat([text, text]), ["a", "b", "a", "b"])
                found = tp.strings.string_split(text, " ").values  # on the host, without a warning
                expect(found == text, [True, True], "bool")
        named = [str(warning.message).split(" runs")[0] for warning in caught]
        assert named == ["kernel 'Concat'", "kernel 'Equal'"]
        engine.fallback = "error"
        with pytest.raises(tp.errors.KernelNotFoundError, match="TENSORPLUG_FALLBACK=error"):
            tp.reshape(text, (2, 1))
        expect(tp.strings.static_regex_replace(text, "a", "c"), ["c", "b"])
