"""Dtypes: names, promotion against the array API standard's tables, weak Python scalars."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.errors import ArgumentError, DTypeError

NAMES = [
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
    *("complex64", "complex128"),
    "string",
]

# The tables of the standard (Type Promotion Rules, 2025.12), by first letter and bits, each cell
# the result of row and column; "-" is undefined there and an error here.
STANDARD = """
    i8  i16 i32 i64 u8  u16 u32 u64
i8  i8  i16 i32 i64 i16 i32 i64 -
i16 i16 i16 i32 i64 i16 i32 i64 -
i32 i32 i32 i32 i64 i32 i32 i64 -
i64 i64 i64 i64 i64 i64 i64 i64 -
u8  i16 i16 i32 i64 u8  u16 u32 u64
u16 i32 i32 i32 i64 u16 u16 u32 u64
u32 i64 i64 i64 i64 u32 u32 u32 u64
u64 -   -   -   -   u64 u64 u64 u64
"""
FLOATS = """
     f16  f32  f64  c64  c128
f16  f16  f32  f64  c64  c128
f32  f32  f32  f64  c64  c128
f64  f64  f64  f64  c128 c128
c64  c64  c64  c128 c64  c128
c128 c128 c128 c128 c128 c128
"""
LETTERS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


def long_name(short: str) -> str:
    return short if short == "-" else LETTERS[short[0]] + short[1:]


def cells(text: str):
    head, *rows = [line.split() for line in text.strip().splitlines()]
    for name, *results in rows:
        for column, result in zip(head, results, strict=True):
            yield long_name(name), long_name(column), long_name(result)


INTEGERS = [name for name in NAMES if "int" in name]
INEXACT = [name for name in NAMES if name.startswith(("float", "complex"))]
EXPECTED = [
    *cells(STANDARD),
    *cells(FLOATS),
    # Beyond the standard: an integer with a float or complex gives that one, and a boolean
    # with anything numeric gives the other.
    *((a, b, b) for a, b in itertools.product(INTEGERS, INEXACT)),
    *((b, a, b) for a, b in itertools.product(INTEGERS, INEXACT)),
    *(("bool", name, name) for name in NAMES[:-1]),
    *((name, "bool", name) for name in NAMES[1:-1]),
    ("string", "string", "string"),
    *((name, "string", "-") for name in NAMES[:-1]),
    *(("string", name, "-") for name in NAMES[:-1]),
]


def test_the_expectations_cover_every_pair():
    assert len(EXPECTED) == len(NAMES) ** 2
    assert {(a, b) for a, b, _ in EXPECTED} == set(itertools.product(NAMES, NAMES))


@pytest.mark.parametrize(("a", "b", "result"), EXPECTED)
def test_promotion(a, b, result):
    pair = [dt.of(a), dt.of(b)]
    if result == "-":
        with pytest.raises(DTypeError, match=rf"^{a} and {b} have no common dtype; .*astype$"):
            dt.promote(pair)
    else:
        assert dt.promote(pair) is dt.of(result)


def test_promotion_of_many_and_of_none():
    assert dt.promote([dt.int8, dt.uint8, dt.float16, dt.bool_]) is dt.float16
    assert dt.promote(iter([dt.uint64])) is dt.uint64
    with pytest.raises(DTypeError, match="no dtype to promote"):
        dt.promote([])


WEAK = [  # Python value, beside which kinds, what comes of it ("=" is the other's dtype)
    (True, NAMES[:-1], "="),
    (1, ["bool"], "int32"),
    (1, NAMES[1:-1], "="),
    (1.5, ["bool", *INTEGERS], "float32"),
    (1.5, INEXACT, "="),
    (1j, ["bool", *INTEGERS, "float16", "float32", "complex64"], "complex64"),
    (1j, ["float64", "complex128"], "complex128"),
]


@pytest.mark.parametrize(
    ("value", "other", "result"),
    [
        (value, other, other if result == "=" else result)
        for value, others, result in WEAK
        for other in others
    ],
)
def test_weak_scalars(value, other, result):
    assert dt.of_scalar(value, dt.of(other)) is dt.of(result)


@pytest.mark.parametrize(
    ("value", "own"), [(False, "bool"), (0, "int32"), (0.0, "float32"), (0j, "complex64")]
)
@pytest.mark.parametrize("other", [None, dt.string])
def test_a_scalar_alone_takes_the_default_of_its_kind(value, own, other):
    assert dt.of_scalar(value, other) is dt.of(own)


def test_a_scalar_that_is_no_number():
    with pytest.raises(DTypeError, match="'x' is not a Python number"):
        dt.of_scalar("x", None)


@pytest.mark.parametrize("name", NAMES)
def test_there_is_one_object_per_dtype(name):
    dtype = dt.of(name)
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.copy(dtype) is dtype
    assert copy.deepcopy([dtype])[0] is dtype
    size = 0 if name == "string" else np.dtype(name).itemsize
    assert (dtype.itemsize, dtype.numpy.itemsize if size else 0) == (size, size)


NUMBERS = [  # number, dtype, the error or None
    (1, "bool", None),
    (127, "int8", None),
    (128, "int8", ArgumentError),
    (-1, "uint8", ArgumentError),
    (2**64 - 1, "uint64", None),
    (2**64, "uint64", ArgumentError),
    (3.0, "int32", None),
    (3e9, "int32", ArgumentError),
    (3.5, "int32", DTypeError),
    (float("nan"), "int32", DTypeError),
    (float("inf"), "int64", DTypeError),
    (1e300, "float16", None),
    (1j, "float32", DTypeError),
    (1j, "int32", DTypeError),
    (1j, "complex64", None),
    (1, "string", DTypeError),
]


@pytest.mark.parametrize(("value", "name", "error"), NUMBERS)
def test_numbers_given_as_attributes(value, name, error):
    if error is None:
        dt.check_number(value, dt.of(name))
    else:
        with pytest.raises(error, match=name):
            dt.check_number(value, dt.of(name))


def test_inexact_and_real_part():
    assert [dt.inexact(dt.of(n)).name for n in ("bool", "int64", "float16", "complex64")] == [
        "float32",
        "float32",
        "float16",
        "complex64",
    ]
    parts = {"complex64": "float32", "complex128": "float64", "int8": "int8"}
    assert {n: dt.real_part(dt.of(n)).name for n in parts} == parts


def test_narrow_floats_compute_in_a_wider_one():
    wide = {dtype.name: dtype.compute.name for dtype in dt.ANY if dtype.compute is not dtype}
    assert wide == {"float16": "float32", "bfloat16": "float32"}
