"""Numbers, lists and arrays instead of tensors, and refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch import host_values
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

INF, NAN = float("inf"), float("nan")

TAKEN = [  # what, dtype asked, dtype that comes, values
    (True, None, "bool", True),
    (3, None, "int32", 3),
    (2**31 - 1, None, "int32", 2**31 - 1),
    (2**31, None, "int64", 2**31),
    (-(2**31) - 1, None, "int64", -(2**31) - 1),
    (2**63, None, "uint64", 2**63),
    (1.5, None, "float32", 1.5),
    (1j, None, "complex64", 1j),
    ([], None, "float32", []),
    ([[], []], None, "float32", [[], []]),
    ([], "int8", "int8", []),
    ([1, 2], None, "int32", [1, 2]),
    ([1, 2**40], None, "int64", [1, 2**40]),
    ((1, 2.5), None, "float32", [1, 2.5]),
    ([True, 2], None, "int32", [1, 2]),
    ([1, 2j], None, "complex64", [1, 2j]),
    (range(3), None, "int32", [0, 1, 2]),
    ([np.float64(1.5)], None, "float32", [1.5]),  # a list is weak, also of strong scalars
    (np.float64(1.5), None, "float64", 1.5),  # NumPy's scalars are arrays: strong
    (np.float32(1.5), None, "float32", 1.5),
    (np.int8(3), None, "int8", 3),
    (np.bool_(True), None, "bool", True),
    (np.arange(3), None, "int64", [0, 1, 2]),
    (np.arange(3, dtype=">i2"), None, "int16", [0, 1, 2]),
    (np.ones((2, 0), np.float16), None, "float16", np.ones((2, 0))),
    ([np.zeros(2), np.ones(2)], None, "float32", [[0, 0], [1, 1]]),
    (300, "int16", "int16", 300),
    ([1, 2], "float16", "float16", [1, 2]),
    ([1e9], "float16", "float16", [INF]),
    ([True], "int8", "int8", [1]),
    (2.0, "int32", "int32", 2),
    (-0.0, "uint8", "uint8", 0),
    ([[0, 1.0], [3e9, -2]], "int64", "int64", [[0, 1], [3000000000, -2]]),
    ([np.float32(2)], "uint8", "uint8", [2]),
    (np.array([2.7, -2.7]), "int32", "int32", [2, -2]),
    (np.array([255.0]), "uint8", "uint8", [255]),
    (np.array([1.5]), "complex64", "complex64", [1.5]),
    ([2**64 - 1], "uint64", "uint64", [2**64 - 1]),
    ([[2**64 - 1], [3]], "uint64", "uint64", [[2**64 - 1], [3]]),  # floats for NumPy
    ([3, 2**63 + 1], None, "uint64", [3, 2**63 + 1]),
]


@pytest.mark.parametrize(("value", "asked", "dtype", "values"), TAKEN, ids=repr)
def test_taken(value, asked, dtype, values):
    found = host_values.as_array(value, None if asked is None else dt.of(asked))
    expected = np.asarray(values, dtype=dtype)
    assert (found.dtype, found.shape) == (np.dtype(dtype), expected.shape)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", ["äß", ["a", "bc"], np.array(["x"]), np.array([["x"]], "T")])
def test_strings(value):
    found = host_values.as_array(value)
    assert dt.of(found.dtype) is dt.string
    assert found.tolist() == np.asarray(value).tolist()


REFUSED = [  # what, dtype asked, error, a part of the message
    ([[1], [1, 2]], None, ShapeError, "nested lists must be rectangular"),
    ([[1], 2], None, ShapeError, "nested lists must be rectangular"),
    ([1, [2]], None, ShapeError, "nested lists must be rectangular"),
    ([np.zeros((2, 2)), np.zeros((2, 3))], None, ShapeError, "nested lists must be rectangular"),
    (None, None, DTypeError, "NoneType None has elements of object"),
    ([None, 1.0], None, DTypeError, "[None, 1.0] has elements of object"),
    (object, None, DTypeError, "has elements of object"),
    ({1: 2}, None, DTypeError, "dict {1: 2} has elements of object"),
    ({1, 2}, None, DTypeError, "set {1, 2} has elements of object"),
    (np.array([1, None], object), None, DTypeError, "has elements of object"),
    (np.array(["2020"], "M8[D]"), None, DTypeError, "datetime64[D]"),
    (np.zeros(1, [("a", "i4")]), None, DTypeError, "they must be numbers, booleans or strings"),
    (np.zeros(1, np.longdouble), None, DTypeError, "unknown dtype"),
    (b"x", None, DTypeError, "must be numbers, booleans or strings"),
    ([1, "a"], None, DTypeError, "[1, 'a'] contains both strings and numbers"),
    ("1", "int32", DTypeError, "but the dtype is int32"),
    ([1], "string", DTypeError, "but the dtype is string"),
    (2**64, None, ArgumentError, "18446744073709551616 does not fit into any integer dtype"),
    (-(2**63) - 1, None, ArgumentError, "does not fit into any integer dtype"),
    ([2**63, -1], None, ArgumentError, "no integer dtype can represent all integers"),
    ([2**64], None, DTypeError, "has elements of object"),
    (300, "int8", ArgumentError, "300 does not fit into int8"),
    ([300, 1], "int8", ArgumentError, "the values from 1 to 300 do not all fit into int8"),
    ([-1], "uint8", ArgumentError, "do not all fit into uint8"),
    (np.array([300]), "int8", ArgumentError, "do not all fit into int8"),
    (np.array([NAN]), "int32", ArgumentError, "nan"),
    (np.array([0, INF]), "int32", ArgumentError, "inf"),
    (np.array([2.0**63]), "int64", ArgumentError, "do not all fit into int64"),
    (np.array([60000], np.float16), "int16", ArgumentError, "do not all fit into int16"),
    (1.5, "int32", DTypeError, "1.5 is not an integer, but the dtype is int32"),
    (NAN, "int32", DTypeError, "nan is not an integer, but the dtype is int32"),
    (INF, "int32", DTypeError, "inf is not an integer, but the dtype is int32"),
    (300.0, "int8", ArgumentError, "300.0 does not fit into int8"),
    (1e300, "int64", ArgumentError, "1e+300 does not fit into int64"),
    ([1.5], "int32", DTypeError, "[1.5] contains fractions or NaN, but the dtype is int32"),
    ([1.0, NAN], "int32", DTypeError, "contains fractions or NaN, but the dtype is int32"),
    ([INF], "int32", ArgumentError, "the values from inf to inf do not all fit into int32"),
    ([1, 300.0], "int8", ArgumentError, "the values from 1.0 to 300.0 do not all fit into int8"),
    ([np.float32(1.5)], "int32", DTypeError, "contains fractions or NaN, but"),
    ([[1], [np.float64(1.5)]], "int32", DTypeError, "contains fractions or NaN, but"),
    (1j, "float32", DTypeError, "1j is complex, but the dtype is float32"),
    (np.array([1j]), "float32", DTypeError, "the values are complex, but the dtype is float32"),
]


@pytest.mark.parametrize(("value", "asked", "error", "message"), REFUSED, ids=repr)
def test_refused(value, asked, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        host_values.as_array(value, None if asked is None else dt.of(asked))
    assert type(caught.value) is error


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("wrap", [lambda t: [t], lambda t: [1.0, t], lambda t: [[0.0], [t]]])
def test_tensors_in_a_list_would_leave_the_tape_silently(wrap):
    with pytest.raises(ArgumentError, match="contains tensors; join them with stack or concat"):
        tp.negative(wrap(tp.asarray(2.0)))  # asarray stacks them: test_lists_of_tensors


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("dtype", [None, "float64", "int32"])
def test_later_writes_to_the_source_are_not_seen(dtype):
    source = np.array([1.0, 2.0])
    tensor = tp.asarray(source, dtype=dtype)
    total = tp.add(source, tensor)
    source[:] = 99
    assert tensor.tolist() == [1, 2]
    assert total.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("value", "is_one"),
    [(True, True), (1, True), (1.0, True), (1j, True), (np.float64(1), True), ("1", False)],
)
def test_which_scalars_are_weak(value, is_one):
    assert host_values.is_scalar(value) is is_one
