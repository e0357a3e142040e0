"""isclose, allclose and array_equal against NumPy's, for every dtype."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

NAN, INF = math.nan, math.inf
VALUES = {
    "bool": [False, True],
    "int8": [-128, -127, -1, 0, 1, 99, 100, 127],
    "uint8": [0, 1, 2, 100, 101, 254, 255],
    "int32": [-(2**31), -1, 0, 1, 1000, 1001, 2**24, 2**24 + 1, 2**31 - 1],
    "uint32": [0, 1, 1000, 1001, 2**24, 2**24 + 1, 2**32 - 1],
    "int64": [-(2**63), -1, 0, 1000, 1001, 2**62, 2**62 + 1, 2**63 - 1],
    "uint64": [0, 1000, 1001, 2**63, 2**64 - 1],
    "float16": [0.0, 1.0, 1.001, -1.0, 65504.0, -65504.0, NAN, INF, -INF],
    "float32": [0.0, 1e-9, 1.0, 1.000009, 1.00002, -1.0, 3e38, NAN, INF, -INF],
    "float64": [0.0, 1e-9, 1.0, 1.0000099, 1.00001001, -1.0, 1e300, NAN, INF, -INF],
    "complex64": [0j, 1 + 1j, 1 + 1.000001j, 1 - 1j, complex(NAN, 1), complex(INF, 0)],
    "complex128": [0j, 1 + 1j, 1 + 1.000001j, complex(1, NAN), complex(INF, 0), complex(-INF, 0)],
}
TOLERANCES = [{}, {"rtol": 0, "atol": 0}, {"rtol": 1e-3, "atol": 0.0}, {"rtol": 0.0, "atol": 1.5}]


def close(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Compare two numbers in Python's arithmetic: exact for integers."""
    if isinstance(a, complex) or isinstance(b, complex):
        nan = [any(map(math.isnan, (x.real, x.imag))) for x in (a, b)]
        infinite = any(map(math.isinf, (a.real, a.imag, b.real, b.imag)))
    else:
        nan = [isinstance(x, float) and math.isnan(x) for x in (a, b)]
        infinite = any(isinstance(x, float) and math.isinf(x) for x in (a, b))
    if any(nan):
        return equal_nan and all(nan)
    if infinite:
        return a == b
    return abs(a - b) <= atol + rtol * abs(b)


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("tolerance", TOLERANCES, ids=repr)
@pytest.mark.parametrize("dtype", VALUES)
def test_each_pair_of_numbers(dtype, tolerance, equal_nan):
    x = np.array(VALUES[dtype], dtype)
    found = tp.isclose(x[:, None], x, equal_nan=equal_nan, **tolerance)
    assert (found.dtype.name, found.shape) == ("bool", (x.size, x.size))
    numbers = [int(n) if dtype == "bool" else n for n in x.tolist()]
    wanted = [
        close(a, b, equal_nan=equal_nan, **tolerance)
        for a, b in itertools.product(numbers, repeat=2)
    ]
    np.testing.assert_array_equal(found.numpy().ravel(), wanted)


@pytest.mark.parametrize(
    "dtypes", [("int32", "float32"), ("float32", "complex64"), ("bool", "int8")]
)
def test_two_dtypes(dtypes):
    a, b = (np.array(VALUES[name][:2], name) for name in dtypes)
    np.testing.assert_array_equal(tp.isclose(a, b).numpy(), np.isclose(a * 1, b * 1))


def test_shapes_and_tolerances():
    a, b = np.linspace(0, 1, 6).reshape(2, 3), np.linspace(0, 1.001, 3)
    for rtol in (1e-3, np.float64(1e-3), np.array([1e-3, 0, 1.0]), tp.asarray(1e-3)):
        found = tp.isclose(a, b, rtol=rtol)
        np.testing.assert_array_equal(found.numpy(), np.isclose(a, b, rtol=np.asarray(rtol)))
    assert tp.isclose(np.zeros((0, 3)), 1.0).shape == (0, 3)
    assert tp.isclose(1.0, 1.0).shape == ()
    # rtol must not be rounded to float32: 1e-5 in float32 is less than 1e-5
    assert tp.isclose(np.float64(1) + 1e-5 * (1 - 2e-9), np.ones(1), atol=0.0).tolist() == [True]


def test_whole_tensors():
    a = np.array([1.0, 2.0])
    for b, wanted in (([1.0, 2.00001], True), ([1.0, 2.1], False), ([[1.0, 2.0]], True)):
        found = tp.allclose(a, b)
        assert (found.dtype.name, found.shape, bool(found)) == ("bool", (), wanted)
    assert bool(tp.allclose(np.zeros(0), 1.0))
    assert bool(tp.allclose([NAN], [NAN], equal_nan=True))
    assert not bool(tp.allclose([NAN], [NAN]))


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([1, 2], [1, 2], True),
        ([1, 2], [1.0, 2.0], True),
        ([1, 2], [1, 3], False),
        ([1, 2], [[1, 2]], False),
        ([1], [1, 1], False),
        ([True], [1], True),
        (["a", "b"], ["a", "b"], True),
        (["a"], ["b"], False),
        (["a"], [["a"]], False),
        ([0.0], [-0.0], True),
        ([NAN], [NAN], False),
        (np.zeros((0, 2)), np.zeros((0, 2)), True),
        (np.zeros((0, 2)), np.zeros((2, 0)), False),
        ([1j], [1j], True),
    ],
    ids=repr,
)
def test_equality_of_tensors(a, b, wanted):
    found = tp.array_equal(a, b)
    assert (found.dtype.name, found.shape, bool(found)) == ("bool", (), wanted)


def test_equal_nan_of_tensors():
    assert bool(tp.array_equal([NAN, 1.0], [NAN, 1.0], equal_nan=True))
    assert not bool(tp.array_equal([NAN, 1.0], [1.0, NAN], equal_nan=True))
    assert bool(tp.array_equal([1, 2], [1, 2], equal_nan=True))


BAD = {  # error: call, what the message says
    DTypeError: [
        (lambda: tp.isclose(["a"], ["a"]), "isclose: a must hold numbers, got string[1]"),
        (lambda: tp.allclose([1.0], ["a"]), "allclose: b must hold numbers, got string[1]"),
        (lambda: tp.isclose([1.0], [1.0], rtol=1j), "isclose: rtol must hold real numbers"),
        (lambda: tp.isclose([1.0], [1.0], atol="a"), "isclose: atol"),
        (lambda: tp.array_equal(["a"], [1]), "string"),
    ],
    ArgumentError: [
        (lambda: tp.isclose([1.0], [1.0], equal_nan=1), "equal_nan must be True or False, got 1"),
        (lambda: tp.array_equal([1], [1], equal_nan=None), "array_equal: equal_nan"),
    ],
    ShapeError: [
        (lambda: tp.isclose([1, 2], [1, 2, 3]), "[2] and [3] cannot be broadcast together"),
    ],
}


test_bad_input = refused(BAD)
