"""Reductions against exact sums (math.fsum, Python integers), along any axes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.errors import ShapeError
from tensorplug.ops import reduction as ops

FLOATS = ["float16", "float32", "float64"]
AXES = [  # shape, axis
    ((5,), None),
    ((4, 5), 0),
    ((4, 5), 1),
    ((4, 5), (0, 1)),
    ((2, 3, 4), (0, 2)),
    ((2, 3, 4), 1),
    ((2, 3, 4), ()),
    ((), None),
    ((1, 6, 1), (0, 1)),
    ((2, 1, 3, 1, 2, 2), (1, 2, 5)),
]


def reduced(x, axis, function, *, keep):
    """Apply ``function`` to the list of elements of each group of a reduction."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    groups = {at: [] for at in np.ndindex(*shape)}
    for at in np.ndindex(*x.shape):
        groups[tuple(0 if k in axes else i for k, i in enumerate(at))].append(x[at].item())
    result = np.empty(shape, object)
    for at, group in groups.items():
        result[at] = function(group)
    return result if keep else result.reshape([n for k, n in enumerate(x.shape) if k not in axes])


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("shape", "axis"), AXES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("spec", "function", "ulp"),
    [
        (ops.SUM, math.fsum, 4),
        (ops.PROD, math.prod, 8),
        (ops.MEAN, lambda group: math.fsum(group) / len(group), 4),
    ],
    ids=["Sum", "Prod", "Mean"],
)
def test_floats(call, near, spec, function, ulp, dtype, shape, axis, keep):
    x = np.random.default_rng(8).uniform(0.5, 1.5, shape).astype(dtype)
    expected = reduced(x, axis, function, keep=keep).astype("float64")
    near(call(spec, x, axis=axis, keep_dims=keep), expected, dtype, ulp=ulp)


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


def test_sums_of_special_values(call, near):
    x = np.array(
        [[math.inf, 1.0], [math.inf, -math.inf], [math.nan, 1.0], [3e38, 3e38]], "float32"
    )
    near(call(ops.SUM, x, axis=1), [math.inf, math.nan, math.nan, math.inf], "float32")
    large = np.full((50_000, 2), 2.0, "float16")
    near(call(ops.SUM, large, axis=0), [math.inf] * 2, "float16")


@pytest.mark.parametrize(
    ("spec", "name"), [(ops.MAX, "reduction_indices"), (ops.MIN, "axis")], ids=["Max", "Min"]
)
def test_extremes_of_nothing(call, spec, name):
    result = call(spec, np.ones((0, 0), "float32"), **{name: 0})
    assert (result.shape, result.dtype) == ((0,), np.dtype("float32"))
    with pytest.raises(ShapeError, match="empty"):
        call(spec, np.ones((0, 2), "float32"), **{name: 0})
