"""Reductions by segment against loops over the segments in wider arithmetic."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    with tp.use_backend(request.param):
        yield request.param


INF, NAN = np.inf, np.nan
FUNCTIONS = {
    "sum": (tp.segment_sum, np.sum),
    "mean": (tp.segment_mean, np.mean),
    "prod": (tp.segment_prod, np.prod),
    "max": (tp.segment_max, np.max),
    "min": (tp.segment_min, np.min),
}
EMPTY = {"sum": 0, "mean": 0, "prod": 1, "max": -INF, "min": INF}

# shape of the ids, rest of the shape of x, number of segments
SHAPES = {
    "elements": ((7,), (), 4),
    "rows": ((7,), (3,), 4),
    "wide rows": ((40,), (6,), 5),
    "table of ids": ((2, 3), (2,), 4),
    "one id": ((), (2,), 3),
    "one element": ((1,), (), 1),
    "no elements": ((0,), (2,), 3),
    "no segments": ((3,), (2,), 0),
    "empty rows": ((3,), (0,), 2),
    "one segment": ((300,), (), 1),
}


def reference(name, x, ids, count):
    rest = x.shape[ids.ndim :]
    out = np.full((count, *rest), EMPTY[name], np.longdouble)
    for segment in range(count):
        picked = x[ids == segment].astype(np.longdouble)
        if len(picked):
            out[segment] = FUNCTIONS[name][1](picked, axis=0)
    return out


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("what", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_segments(name, what, dtype, backend):
    if backend == "minimal" and dtype != "float32":
        pytest.skip("the example has no other dtypes")
    shape, rest, count = SHAPES[what]
    rng = np.random.default_rng(len(what))
    x = rng.uniform(0.9, 1.1, (*shape, *rest)).astype(dtype)
    ids = rng.integers(-1, count + 1, shape, dtype=np.int32)
    found = FUNCTIONS[name][0](x, ids, count)
    wanted = reference(name, x, ids, count)
    assert (found.dtype.name, found.shape) == (dtype, wanted.shape)
    tolerance = max(x.size, 4) * np.finfo(dtype).eps
    np.testing.assert_allclose(found.numpy(), wanted.astype(dtype), rtol=tolerance)


INTEGERS = {  # of the segments 0 (two elements), 1 (empty) and 2
    "sum": ("int32", [3, 0, 7]),
    "mean": ("float32", [1.5, 0, 7]),
    "prod": ("int32", [-4, 1, 7]),
    "max": ("int32", [4, -(2**31), 7]),
    "min": ("int32", [-1, 2**31 - 1, 7]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_with_a_derived_number(name):
    dtype, wanted = INTEGERS[name]
    found = FUNCTIONS[name][0]([7, -1, 4], [2, 0, 0])
    assert (found.dtype.name, found.shape) == (dtype, (3,))
    assert found.tolist() == wanted
    assert FUNCTIONS[name][0]([7, -1, 4], [-1, -2, -1]).shape == (0,)
    assert FUNCTIONS[name][0](np.zeros((0, 2), np.float32), np.zeros(0, np.int32)).shape == (0, 2)


def test_nan_wins_and_minus_infinity_is_an_element():
    x = [1.0, NAN, -INF, -INF, 2.0]
    found = tp.segment_max(x, [0, 0, 1, 1, 2], 4).numpy()
    np.testing.assert_array_equal(found, [NAN, -INF, 2, -INF])
    slopes = tp.grad(lambda x: tp.sum(tp.segment_max(x, [0, 0, 1, 1, 2], 4)[1:]))(tp.asarray(x))
    np.testing.assert_array_equal(slopes.numpy(), [0, 0, 0.5, 0.5, 1])


X = np.ones((3, 4), np.float32)
BAD = [
    (lambda: tp.segment_sum(X, [0, 1], 2), ShapeError, "segment_sum: x is float32[3,4], but its"),
    (lambda: tp.segment_max(X * 1j, [0] * 3, 2), DTypeError, "segment_max: x is complex"),
    (lambda: tp.segment_min(X > 0, [0] * 3, 2), DTypeError, "segment_min: x is bool[3,4], but"),
    (lambda: tp.segment_prod(X, [0.5] * 3, 2), DTypeError, "segment_ids are float32[3], but must"),
    (lambda: tp.segment_mean(X, [0] * 3, -1), ArgumentError, "segment_mean: num_segments must be"),
    (lambda: tp.segment_mean(X, [0] * 3, 1.5), ArgumentError, "segment_mean: num_segments"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message, backend):
    if backend == "minimal":
        pytest.skip("checked before any kernel runs")
    with pytest.raises(error, match=re.escape(message)):
        call()
