"""Reductions of every kind of walk: error bounds, and parts of long rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops import extremes, reduction

SHAPES = [
    ((), ()),
    ((5,), (0,)),
    ((2, 3, 4), (0, 1, 2)),
    ((2, 3, 4), (0,)),
    ((2, 3, 4), (1,)),
    ((2, 3, 4), (0, 2)),
    ((2, 3, 2, 3, 2, 3, 2, 3), (1, 3, 5, 7)),
    ((3, 4), ()),
    ((300, 1000), (0,)),
    ((3, 5000), (1,)),
    ((70_000,), (0,)),
    ((2**18 - 1,), (0,)),  # from here on a CPU cuts rows into parts
    ((2**18 + 1,), (0,)),
    ((2**20,), (0,)),
    ((4, 70_001), (1,)),
    ((40_001, 9), (0,)),
]


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sum_mean_and_extremes(call, near, shape, axes, keep_dims, dtype):
    x = np.random.default_rng(2).normal(size=shape).astype(dtype)
    wide, options = x.astype(np.longdouble), {"axis": axes, "keepdims": keep_dims}
    bound = np.abs(wide).sum(**options) * np.finfo(dtype).eps
    attributes = {"axis": axes, "keep_dims": keep_dims}
    near(call(reduction.SUM, x, **attributes), wide.sum(**options), dtype, bound=bound)
    count = math.prod(shape[axis] for axis in axes)
    near(
        call(reduction.MEAN, x, **attributes),
        wide.sum(**options) / count,
        dtype,
        bound=bound / count,
    )
    near(call(reduction.MIN, x, **attributes), x.min(**options), dtype)
    maximum = call(reduction.MAX, x, reduction_indices=axes, keep_dims=keep_dims)
    near(maximum, x.max(**options), dtype)


def test_a_long_sum_of_equal_terms_does_not_drift(call, near):
    x = np.full(1_000_000, 0.1, np.float32)
    expected = np.longdouble(np.float32(0.1)) * 1_000_000
    near(call(reduction.SUM, x), expected, "float32", ulp=1)


@pytest.mark.parametrize(
    ("size", "at"),
    [(70_000, 0), (70_000, 600), (70_000, 69_999), (300_001, 3), (300_001, 299_990)],
)
def test_nan_wins_every_extreme(call, size, at):
    x = np.zeros(size, np.float32)
    x[[at, -1]] = math.nan, math.inf
    x[at] = math.nan
    assert math.isnan(call(reduction.MAX, x))
    assert math.isnan(call(reduction.MIN, x))
    assert call(extremes.ARG_MAX, x, axis=0) == at


@pytest.mark.parametrize("places", [(5, 100_000, 300_000), (299_000, 299_001), (300_000,)])
def test_the_first_of_equals_in_parts_of_a_row(call, places):
    x = np.zeros(300_001, np.float32)
    x[list(places)] = 1
    assert call(extremes.ARG_MAX, x, axis=0) == places[0]
    assert call(extremes.ARG_MIN, -x, axis=0) == places[0]


def test_integers_wrap_in_parts_of_a_row(call, near):
    x = np.full(300_001, 2**31 - 5, np.int32)
    near(call(reduction.SUM, x, axis=0), x.sum(dtype=np.int32), "int32")
    near(call(reduction.PROD, x, axis=0), x.prod(dtype=np.int32), "int32")
