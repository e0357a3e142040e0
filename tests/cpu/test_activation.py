"""Activations against their formulas in float64."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from tensorplug.ops.nn import activation as ops

INF, NAN = math.inf, math.nan
FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(8,), (2, 4), (1,), ()])
def test_relu(call, near, dtype, shape):
    count = math.prod(shape)
    values = [2, 0, 1, 127, 5, 6, 7, 3] if dtype[0] == "u" else [-1, 0, 1, -127, 5, -6, 7, 3]
    x = np.array(values[:count], dtype).reshape(shape)
    near(call(ops.RELU, x), np.array([max(v, 0) for v in values[:count]]).reshape(shape), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 100, 2000])
def test_relu_of_special_values(call, near, dtype, count):
    x = np.array(([-0.0] * 67 + [0.0, NAN, INF, -INF]) * count, dtype)
    near(call(ops.RELU, x), ([0.0] * 68 + [NAN, INF, 0.0]) * count, dtype)  # no -0.0 among them
    near(call(ops.RELU6, x), ([0.0] * 68 + [NAN, 6.0, 0.0]) * count, dtype)


def logistic(x):
    if math.isnan(x):
        return x
    return 1 / (1 + math.exp(-x)) if x > -40 else math.exp(x) if x > -740 else 0.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_sigmoid(call, near, dtype):
    x = np.array([0, -0.0, 1, -1, 20, -20, 88.5, -88.5, -100, 700, -700, INF, -INF, NAN], dtype)
    near(call(ops.SIGMOID, x), [logistic(float(number)) for number in x], dtype, ulp=4)


def test_sigmoid_of_complex(call, near):
    z = [0.5 + 1j, -3 + 2j, 0j, 2 - 0.5j]
    near(
        call(ops.SIGMOID, np.array(z)),
        [1 / (1 + cmath.exp(-number)) for number in z],
        "complex128",
        ulp=8,
    )


def softmax(row):
    top = max(row)
    powers = [math.exp(number - top) for number in row]
    return [power / math.fsum(powers) for power in powers]


def log_softmax(row):
    top = max(row)
    return [
        number - top - math.log(math.fsum(math.exp(score - top) for score in row))
        for number in row
    ]


ROWS = [[1.0, 2.0, 3.0], [-5.0, 0.0, 5.0], [100.0, 0.0, -100.0], [1e4, 1e4, 1e4], [0.0, -INF, 1.0]]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    ("spec", "name", "function"),
    [(ops.SOFTMAX, "dim", softmax), (ops.LOG_SOFTMAX, "axis", log_softmax)],
    ids=["Softmax", "LogSoftmax"],
)
def test_along_every_axis(call, near, spec, name, function, axis, dtype):
    x = np.moveaxis(np.array(ROWS, dtype).reshape(5, 1, 3), 2, axis)
    expected = np.moveaxis(np.array([function(row) for row in ROWS]).reshape(5, 1, 3), 2, axis)
    near(call(spec, x, **{name: axis}), expected, dtype, ulp=3)


@pytest.mark.parametrize(
    ("spec", "name", "even"),
    [(ops.SOFTMAX, "dim", 0.5), (ops.LOG_SOFTMAX, "axis", -math.log(2))],
    ids=["Softmax", "LogSoftmax"],
)
@pytest.mark.parametrize("row", [[-INF, -INF], [INF, 1.0], [NAN, 1.0]])
def test_undefined_rows(call, near, spec, name, even, row):
    """The largest entry minus itself is NaN, which the sum spreads to its own row alone."""
    result = call(spec, np.array([row, [3.0, 3.0]]), **{name: -1})
    near(result, [[NAN, NAN], [even, even]], "float64", ulp=1)


@pytest.mark.parametrize(("spec", "name"), [(ops.SOFTMAX, "dim"), (ops.LOG_SOFTMAX, "axis")])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_empty(call, spec, name, shape):
    result = call(spec, np.zeros(shape, "float32"), **{name: 0})
    assert (result.shape, result.dtype) == (shape, np.dtype("float32"))
