"""finfo, iinfo, isdtype, can_cast, result_type: the standard's questions about dtypes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import ArgumentError, DTypeError

NAMES = sorted(dtype.name for dtype in dt.FIXED)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_limits_of_floats(name):
    digits = {"float16": 10, "float32": 23, "complex64": 23, "float64": 52, "complex128": 52}[name]
    highest = {"float16": 15, "float32": 127, "complex64": 127}.get(name, 1023)
    part = name.replace("complex64", "float32").replace("complex128", "float64")
    for given in (getattr(tp, name), name, tp.asarray(1, dtype=name)):
        result = tp.finfo(given)
        assert result.bits == np.dtype(part).itemsize * 8
        assert result.eps == 2.0**-digits
        assert result.max == -result.min == (2 - 2.0**-digits) * 2.0**highest
        assert result.smallest_normal == 2.0 ** (1 - highest)
        assert result.dtype is getattr(tp, part)
        assert {type(getattr(result, word)) for word in ("eps", "max", "min")} == {float}


@pytest.mark.parametrize("name", [item for item in NAMES if "int" in item])
def test_limits_of_integers(name):
    bits = int(name.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for given in (getattr(tp, name), name, tp.asarray(1, dtype=name)):
        result = tp.iinfo(given)
        assert (result.bits, result.min, result.max) == (bits, low, high)
        assert result.dtype is getattr(tp, name)


def test_limits_of_the_other_kind():
    with pytest.raises(DTypeError, match="finfo: dtype must be floating or complex, got int8"):
        tp.finfo(tp.int8)
    with pytest.raises(DTypeError, match="iinfo: dtype must be an integer, got float32"):
        tp.iinfo(tp.asarray([1.0]))


KINDS = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "real floating": "float16 bfloat16 float32 float64",
    "complex floating": "complex64 complex128",
    "numeric": "int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 bfloat16 float32 float64 "
    "complex64 complex128",
}


@pytest.mark.parametrize("kind", KINDS)
def test_isdtype_knows_each_kind(kind):
    members = KINDS[kind].split()
    assert [name for name in NAMES if tp.isdtype(getattr(tp, name), kind)] == sorted(members)
    assert not tp.isdtype(tp.string, kind)


def test_kinds_together_and_single_dtypes():
    assert tp.isdtype(tp.int8, ("bool", "integral"))
    assert tp.isdtype(tp.int8, (tp.float32, tp.int8))
    assert not tp.isdtype(tp.int8, ())
    assert not tp.isdtype(tp.int8, tp.int16)
    assert tp.isdtype(np.dtype("int8"), tp.int8)
    with pytest.raises(ArgumentError, match="got 'integer'"):
        tp.isdtype(tp.int8, ("integral", "integer"))
    with pytest.raises(DTypeError, match="isdtype: unknown dtype 'quad'"):
        tp.isdtype("quad", "bool")


@pytest.mark.parametrize("name", NAMES)
def test_casts_that_promotion_makes(name):
    a = getattr(tp, name)
    for other in NAMES:
        b = getattr(tp, other)
        try:
            expected = dt.promote((a, b)) is b
        except DTypeError:
            expected = False
        assert tp.can_cast(a, b) is expected
        assert tp.can_cast(tp.asarray(0, dtype=a), b) is expected
    assert not tp.can_cast(tp.string, a)
    assert tp.can_cast(a, a)


@pytest.mark.parametrize(
    ("source", "target", "possible"),
    [
        ("int8", "int16", True),
        ("int16", "int8", False),
        ("uint8", "int16", True),
        ("uint8", "int8", False),
        ("float32", "complex64", True),
        ("float64", "complex64", False),
        ("complex64", "float32", False),
        ("bool", "int8", True),
        ("float32", "int64", False),
    ],
)
def test_casts_by_name(source, target, possible):
    assert tp.can_cast(source, target) is possible


def test_result_types():
    for a, b in itertools.product(NAMES, NAMES):
        x, y = tp.asarray(0, dtype=a), tp.asarray(0, dtype=b)
        if {a, b} in ({"uint64", name} for name in ("int8", "int16", "int32", "int64")):
            with pytest.raises(DTypeError, match="no common dtype"):
                tp.result_type(x, y)
            continue
        expected = dt.promote((dt.of(a), dt.of(b)))
        assert tp.result_type(x, y) is expected
        assert tp.result_type(dt.of(a), y) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((tp.int8, 1), "int8"),
        ((tp.int8, np.float64(1)), "float32"),
        ((1, tp.int8), "int8"),
        ((tp.int8, 1.0), "float32"),
        ((tp.float16, 1), "float16"),
        ((tp.float16, 1.0), "float16"),
        ((tp.float64, 1j), "complex128"),
        ((tp.int16, 1j), "complex64"),
        ((tp.bool, True), "bool"),
        ((tp.bool, 1), "int32"),
        ((tp.uint8, True, 2, tp.int8), "int16"),
        (("int8",), "int8"),
    ],
)
def test_result_types_with_scalars(given, expected):
    assert tp.result_type(*given) is getattr(tp, expected)


def test_result_type_of_scalars_alone():
    for given in ((), (1, 2.0)):
        with pytest.raises(ArgumentError, match="at least one tensor or dtype"):
            tp.result_type(*given)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_takes_our_dtypes(name):
    dtype = getattr(tp, name)
    assert np.dtype(dtype) == np.dtype(name)
    assert np.zeros(2, dtype=dtype).dtype == np.dtype(name)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_promotes_tensors(name):
    x = tp.asarray([0, 1], dtype=name)
    assert np.result_type(x) == np.dtype(name)
    assert np.result_type(x, np.float64) == np.result_type(np.dtype(name), np.float64)
