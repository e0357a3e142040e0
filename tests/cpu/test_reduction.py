"""Reductions against exact sums (math.fsum, Python integers), along any axes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.errors import ShapeError
from tensorplug.ops import reduction as ops
from tensorplug.plugin import dtypes as dt

INTEGERS = sorted(dtype.name for dtype in dt.INTEGER)
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


def wrapped(value, dtype):
    limits = np.iinfo(dtype)
    return (value - int(limits.min)) % 2**limits.bits + int(limits.min)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("shape", "axis"), AXES)
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize(
    ("spec", "function"), [(ops.SUM, sum), (ops.PROD, math.prod)], ids=["Sum", "Prod"]
)
def test_integers_wrap(call, spec, function, dtype, shape, axis, keep):
    rng = np.random.default_rng(7)
    limits = np.iinfo(dtype) if dtype != "bool" else np.iinfo("uint8")
    x = rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True).astype(dtype)
    out = "int32" if dtype == "bool" else dtype
    expected = reduced(x, axis, lambda group: wrapped(function(map(int, group)), out), keep=keep)
    result = call(spec, x, axis=axis, keep_dims=keep)
    assert (result.dtype, result.shape) == (np.dtype(out), expected.shape)
    np.testing.assert_array_equal(result, expected.astype(out))


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


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint64", "bool", "complex64"])
@pytest.mark.parametrize(("spec", "identity"), [(ops.SUM, 0), (ops.PROD, 1)], ids=["Sum", "Prod"])
@pytest.mark.parametrize(
    ("shape", "axis", "out"), [((0, 3), 0, (3,)), ((0, 3), 1, (0,)), ((0,), None, ())]
)
def test_empty_sums(call, spec, identity, dtype, shape, axis, out):
    result = call(spec, np.ones(shape, dtype), axis=axis)
    assert (result.dtype, result.shape) == (np.dtype("int32" if dtype == "bool" else dtype), out)
    assert (result == identity).all()


def test_mean_of_nothing_is_nan(call, near):
    near(call(ops.MEAN, np.ones((0, 2), "float32"), axis=0), [math.nan] * 2, "float32")


def test_sums_of_special_values(call, near):
    x = np.array(
        [[math.inf, 1.0], [math.inf, -math.inf], [math.nan, 1.0], [3e38, 3e38]], "float32"
    )
    near(call(ops.SUM, x, axis=1), [math.inf, math.nan, math.nan, math.inf], "float32")
    large = np.full((50_000, 2), 2.0, "float16")
    near(call(ops.SUM, large, axis=0), [math.inf] * 2, "float16")


def largest(group):
    return math.nan if any(map(math.isnan, group)) else max(group)


def smallest(group):
    return math.nan if any(map(math.isnan, group)) else min(group)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("shape", "axis"), AXES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(
    ("spec", "name", "function"),
    [(ops.MAX, "reduction_indices", largest), (ops.MIN, "axis", smallest)],
    ids=["Max", "Min"],
)
def test_extremes(call, near, spec, name, function, dtype, shape, axis, keep):
    rng = np.random.default_rng(10)
    if dtype in FLOATS:
        x = rng.choice(
            [0.0, 1.5, -2.0, math.inf, -math.inf, math.nan], shape, p=[0.2] * 4 + [0.15, 0.05]
        )
        x = np.asarray(x).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        x = rng.choice(np.array([limits.min, limits.max, 3], dtype), shape)
        x = np.asarray(x)
    expected = reduced(x, axis, function, keep=keep)
    near(
        call(spec, x, **{name: axis, "keep_dims": keep}),
        expected.astype(dtype),
        dtype,
        zeros=False,
    )


@pytest.mark.parametrize(
    ("spec", "name"), [(ops.MAX, "reduction_indices"), (ops.MIN, "axis")], ids=["Max", "Min"]
)
def test_extremes_of_nothing(call, spec, name):
    result = call(spec, np.ones((0, 0), "float32"), **{name: 0})
    assert (result.shape, result.dtype) == ((0,), np.dtype("float32"))
    with pytest.raises(ShapeError, match="empty"):
        call(spec, np.ones((0, 2), "float32"), **{name: 0})


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [*AXES, ((0, 2), 0), ((0, 2), 1)])
@pytest.mark.parametrize(
    ("spec", "function"), [(ops.ANY, any), (ops.ALL, all)], ids=["Any", "All"]
)
def test_logical(call, spec, function, shape, axis, keep):
    x = np.asarray(np.random.default_rng(11).random(shape) < 0.6)
    expected = (
        reduced(x, axis, function, keep=keep)
        if x.size
        else np.full(x.sum(axis, keepdims=keep).shape, spec is ops.ALL)
    )
    result = call(spec, x, axis=axis, keep_dims=keep)
    assert (result.dtype, result.shape) == (np.dtype(bool), expected.shape)
    np.testing.assert_array_equal(result, expected.astype(bool))


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, 3, 3, 2], "float32", 1),
        ([1, NAN, INF, NAN], "float32", 1),
        ([NAN, 5.0], "float16", 0),
        ([-INF, -INF], "float64", 0),
        ([-0.0, 0.0], "float32", 0),
        ([-128, 127, 127], "int8", 1),
        ([-(2**63), -(2**63)], "int64", 0),
        ([0, 2**64 - 1, 2**63], "uint64", 1),
    ],
)
def test_arg_max_takes_the_first(call, values, dtype, expected):
    x = np.array(values, dtype)
    for shape, axis in [((-1,), 0), ((1, -1), 1), ((-1, 1), 0)]:
        result = call(ops.ARG_MAX, x.reshape(shape), axis=axis)
        assert (result.dtype, result.shape) == (np.dtype("int32"), (1,) * (len(shape) - 1))
        assert result.item() == expected


def test_arg_max_of_nothing(call):
    assert call(ops.ARG_MAX, np.ones((3, 0), "float32"), axis=0).shape == (0,)
