"""Sums against exact ones: their error grows with the logarithm of the number of terms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops import reduction as ops

FLOATS = ["float16", "float32", "float64"]


LONG = [
    ((100_000, 3), 0),
    ((100_000, 3), 1),
    ((3, 100_000), 1),
    ((3, 100_000), 0),
    ((64, 9, 11, 16), (0, 1, 2)),
    ((64, 9, 11, 16), (1, 3)),
    ((1025, 5), 0),
    ((2000, 7), 1),
    ((2000, 16, 2), 1),
    ((70_001,), None),
    ((33, 1, 65, 3), (0, 2)),
]


@pytest.mark.parametrize("terms", ["equal", "positive", "mixed", "scales"])
@pytest.mark.parametrize(("shape", "axis"), LONG)
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64"])
def test_error_grows_with_the_logarithm(call, dtype, shape, axis, terms):
    rng = np.random.default_rng(9)
    wide = {
        "equal": lambda: np.full(shape, 0.1),
        "positive": lambda: rng.uniform(0, 1, shape),
        "mixed": lambda: rng.standard_normal(shape),
        "scales": lambda: 10.0 ** rng.uniform(-4, 0, shape),
    }[terms]()
    x = (wide / 100).astype(dtype)  # so that a sum of 100,000 fits float16
    axes = axis if isinstance(axis, tuple) else tuple(range(x.ndim)) if axis is None else (axis,)
    count = math.prod(shape[number] for number in axes)
    exact = x.astype(np.clongdouble if dtype == "complex64" else np.longdouble)
    result = call(ops.SUM, x, axis=axis, keep_dims=False)
    expected = exact.sum(axes)
    assert (result.dtype, result.shape) == (x.dtype, expected.shape)
    bound = np.finfo(dtype).eps * math.log2(count) * np.abs(exact).sum(axes)
    rounding = float(np.finfo(dtype).smallest_subnormal) / 2  # of a subnormal result
    assert (np.abs(result - expected) <= bound + rounding).all()
