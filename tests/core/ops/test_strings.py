"""Strings: their own functions, and all ops that move or compare them, on devices without any."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, FallbackWarning, ShapeError
from tensorplug.host_functions.fingerprints import fingerprints
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


# n-grams -----------------------------------------------------------------------------------

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


# Parts -------------------------------------------------------------------------------------

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


# Buckets -----------------------------------------------------------------------------------

FINGERPRINTS = {
    0: 0x9AE16A3B2F90404F,
    1: 0x2F16F213552B75C9,
    2: 0xE5A8337439AD9862,
    3: 0x4E0DDCD44A4BFA6D,
    4: 0xD3A86ABF3E91EC41,
    5: 0x8D1B433C7E768272,
    7: 0x512D2011A5672D13,
    8: 0xFC766BE8CF552F80,
    9: 0x35F6ADBA0DD7A510,
    15: 0x1FF7720A4502528A,
    16: 0x8519666A4A4637DA,
    17: 0x49BAD07BF7A76B85,
    24: 0xF40E2F6B6CF6866E,
    31: 0x7CE468DD5BAFF1BF,
    32: 0x851233A1A56C3A51,
    33: 0xFAFB1B2DA8F771F2,
    48: 0xC129B37E0529294D,
    63: 0x6FBB1ABBD54ACCD4,
    64: 0x88450DD3B9522781,
    65: 0x09247A84C0BB5785,
    100: 0x9B301D069397DE83,
    127: 0x031BE4B1BA2FD207,
    128: 0xEDF330F158AFA0C6,
    129: 0x4C78E1A89EDDAC03,
    192: 0x4D6D0CDC110D2705,
    193: 0xFA6F6DD4EA648510,
    300: 0xA1FC110755E76FB9,
}


def test_fingerprints_are_those_of_the_reference_implementation():
    texts = {n: bytes((i * 37 + n * 11) % 95 + 32 for i in range(n)) for n in FINGERPRINTS}
    assert (
        dict(zip(texts, fingerprints(list(texts.values())).tolist(), strict=True)) == FINGERPRINTS
    )


def test_buckets(backend):
    """TensorFlow's own numbers; bytes are those of UTF-8."""
    expect(tp.strings.string_to_hash_bucket_fast(["a", "b", "c", "d"], 10), [9, 2, 2, 5], "int32")
    text = bytes((i * 37 + 63 * 11) % 95 + 32 for i in range(63)).decode()
    found = tp.strings.string_to_hash_bucket_fast([[text]], 2**31)
    expect(found, [[FINGERPRINTS[63] % 2**31]], "int32")


# Patterns ----------------------------------------------------------------------------------


def test_patterns(backend):
    replace = tp.strings.static_regex_replace
    expect(replace(["this", "is, a"], "[aeiou]", "-"), ["th-s", "-s, -"])
    expect(replace(["aaa"], "a", "b", replace_global=False), ["baa"])
    expect(replace(["é1"], r"\w", "x"), ["éx"])  # as in RE2 and JavaScript
    assert replace("ab", "(a)|z", r"[\1]").item() == "[a]b"


BAD = {
    "splits": (
        lambda: tp.strings.string_n_grams(["a"], [0, 2], " ", 1),
        ArgumentError,
        "data_splits must go from 0 to the number of strings, 1, got 0 to 2",
    ),
    "descending": (
        lambda: tp.strings.string_n_grams(["a"], [0, 1, 0, 1], " ", 1),
        ArgumentError,
        "data_splits must be ascending, but element 2 is 0 after 1",
    ),
    "width": (
        lambda: tp.strings.string_n_grams(["a"], [0, 1], " ", [0]),
        ArgumentError,
        r"StringNGrams.*attribute 'n_gram_widths': must be one or more positive",
    ),
    "separator": (
        lambda: tp.strings.string_n_grams(["a"], [0, 1], 3, 1),
        ArgumentError,
        "attribute 'separator': must be a string, got 3",
    ),
    "rank": (lambda: tp.strings.string_split([["a"]], " "), ShapeError, "input must have rank 1"),
    "numbers": (lambda: tp.strings.string_split([1], " "), DTypeError, "must be one of string"),
    "buckets": (
        lambda: tp.strings.string_to_hash_bucket_fast(["a"], 0),
        ArgumentError,
        "must be from 1 to",
    ),
    "pattern": (
        lambda: tp.strings.static_regex_replace(["a"], "(", ""),
        ArgumentError,
        "attribute 'pattern': pattern '\\(': missing \\)",
    ),
    "class": (
        lambda: tp.strings.static_regex_replace(["a"], "[[:alpha:]]", ""),
        ArgumentError,
        "contains a POSIX character class",
    ),
    "group": (
        lambda: tp.strings.static_regex_replace(["a"], "(a)", r"\2"),
        ArgumentError,
        "names group 2, but pattern '\\(a\\)' has 1",
    ),
    "escape": (
        lambda: tp.strings.static_regex_replace(["a"], "a", r"\n"),
        ArgumentError,
        "there must be a digit or another",
    ),
}


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize("what", BAD)
def test_bad_input(what):
    call, error, message = BAD[what]
    with pytest.raises(error, match=message):
        call()


# Ops that are no strings' own --------------------------------------------------------------

N = np.array([["b", "a", "ä"], ["", "雨", "b"]])
TABLE = np.array([True, False, True])
OPS = {  # a call, what NumPy makes of it
    "equal": (lambda t: t == "b", N == "b"),
    "not equal": (lambda t: tp.not_equal(t, ["b", "a", "b"]), np.array(["b", "a", "b"]) != N),
    "less": (lambda t: t < "b", N < "b"),
    "at least": (lambda t: tp.greater_equal(t, "b"), N >= "b"),
    "concat": (lambda t: tp.concat([t, t], axis=1), np.concatenate([N, N], 1)),
    "gather": (lambda t: tp.gather(t, [2, 0], axis=1), N[:, [2, 0]]),
    "gather_nd": (lambda t: tp.gather_nd(t, [[1, 1], [0, 2]]), N[[1, 0], [1, 2]]),
    "reshape": (lambda t: tp.reshape(t, (3, 2)), N.reshape(3, 2)),
    "transpose": (lambda t: t.T, N.T),
    "unique": (tp.unique_values, np.array(["b", "a", "ä", "", "雨"])),
    "select": (lambda t: tp.where(TABLE, t, t[:, ::-1]), np.where(TABLE, N, N[:, ::-1])),
    "coordinates": (lambda t: tp.argwhere(t == "b"), np.argwhere(N == "b")),
    "tile": (lambda t: tp.tile(t, (2, 2)), np.tile(N, (2, 2))),
    "stack": (lambda t: tp.stack([t, t]), np.stack([N, N])),
    "unstack": (lambda t: tp.unstack(t)[1], N[1]),
    "split": (lambda t: tp.split(t, [1, 2], axis=1)[1], N[:, 1:]),
    "steps": (lambda t: t[1, ::-2], N[1, ::-2]),
    "mask": (lambda t: t[t == "b"], N[N == "b"]),
    "flip": (lambda t: tp.flip(t, axis=1), N[:, ::-1]),
    "roll": (lambda t: tp.roll(t, 1, axis=1), np.roll(N, 1, 1)),
    "broadcast": (lambda t: tp.broadcast_to(t, (2, 2, 3)), np.broadcast_to(N, (2, 2, 3))),
    "pad": (
        lambda t: tp.pad(t, [(1, 0), (0, 1)], "x"),
        np.pad(N, [(1, 0), (0, 1)], constant_values="x"),
    ),
    "isin": (lambda t: tp.isin(t, ["a", "b"]), np.isin(N, ["a", "b"])),
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
