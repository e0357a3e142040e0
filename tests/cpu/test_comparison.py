"""Comparison and logic against Python's operators."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from tensorplug.ops import comparison as ops


def named(parameter):
    return getattr(parameter, "name", "")


ORDER = [
    (ops.LESS, operator.lt),
    (ops.LESS_EQUAL, operator.le),
    (ops.GREATER, operator.gt),
    (ops.GREATER_EQUAL, operator.ge),
]
EQUALITY = [(ops.EQUAL, operator.eq), (ops.NOT_EQUAL, operator.ne)]
VALUES = {
    "float16": [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan],
    "float32": [0.0, -0.0, 1e-40, math.inf, -math.inf, math.nan],
    "float64": [0.0, -0.0, 5e-324, math.inf, -math.inf, math.nan],
    "int8": [-128, -1, 0, 127],
    "int64": [-(2**63), 2**63 - 1, 2**53, 2**53 + 1],
    "uint64": [0, 2**64 - 1, 2**63],
}


def check(call, spec, function, a, b):
    result = call(spec, a, b)
    expected = np.array([[function(x.item(), y.item()) for y in b.flat] for x in a.flat])
    assert (result.dtype, result.shape) == (np.dtype(bool), expected.shape)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize(("spec", "function"), ORDER + EQUALITY, ids=named)
def test_comparison(call, spec, function, dtype):
    values = np.array(VALUES[dtype], dtype)
    check(call, spec, function, values[:, None], values[None])


@pytest.mark.parametrize(("spec", "function"), EQUALITY, ids=named)
@pytest.mark.parametrize(
    "values",
    [np.array([1, 1j, 1 + 1j, complex(math.nan, 0)]), np.array([True, False])],
    ids=["complex", "bool"],
)
def test_equality(call, spec, function, values):
    check(call, spec, function, values[:, None], values[None])


@pytest.mark.parametrize(
    ("spec", "function"),
    [(ops.LOGICAL_AND, operator.and_), (ops.LOGICAL_OR, operator.or_)],
    ids=["and", "or"],
)
def test_logic(call, spec, function):
    values = np.array([True, False])
    check(call, spec, function, values[:, None], values[None])


@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_not(call, shape):
    result = call(ops.LOGICAL_NOT, np.ones(shape, bool))
    assert (result.dtype, result.shape) == (np.dtype(bool), shape)
    assert not result.any()


@pytest.mark.parametrize("spec", [spec for spec, _ in ORDER + EQUALITY], ids=lambda x: x.name)
@pytest.mark.parametrize(
    ("a", "b", "out"), [((), (), ()), ((0,), (1,), (0,)), ((2, 1), (3,), (2, 3))]
)
def test_shapes(call, spec, a, b, out):
    result = call(spec, np.ones(a, "float32"), np.ones(b, "float32"))
    assert (result.dtype, result.shape) == (np.dtype(bool), out)
