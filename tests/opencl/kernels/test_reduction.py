"""Reductions and matrix products: exact integers, long doubles, and error bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.ops import extremes, matrix_products, reduction

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
REDUCTIONS = [
    (reduction.SUM, np.sum, "axis"),
    (reduction.PROD, np.prod, "axis"),
    (reduction.MAX, np.max, "reduction_indices"),
    (reduction.MIN, np.min, "axis"),
]


def name(value):
    return getattr(value, "name", None)


@pytest.mark.parametrize("dtype", sorted(dtype.name for dtype in dt.INTEGER))
@pytest.mark.parametrize(("spec", "formula", "attribute"), REDUCTIONS, ids=name)
def test_integers(call, near, spec, formula, attribute, dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(limits.min, limits.max, (4, 70, 3), dtype, endpoint=True)
    with np.errstate(all="ignore"):
        expected = formula(x, axis=(0, 1), **({"dtype": dtype} if spec is reduction.SUM else {}))
    near(call(spec, x, **{attribute: (0, 1)}), expected.astype(dtype), dtype)


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
    ("values", "expected"),
    [
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([3e38, 3e38], math.inf),
        ([1.0, math.nan], math.nan),
        ([], 0.0),
    ],
)
@pytest.mark.parametrize("copies", [1, 1000, 300_000])
def test_sums_of_special_values(call, near, values, expected, copies):
    """Repeated, so that vectors and the second pass see them too."""
    x = np.array((values if copies == 1 else [*values, *[0.0] * copies]), np.float32)
    near(call(reduction.SUM, x), expected, "float32")


def test_small_terms_survive_cancellation(call, near):
    near(call(reduction.SUM, np.array([1e30, 1.0, -1e30], np.float32)), 1.0, "float32")


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


@pytest.mark.parametrize(
    ("values", "index"),
    [
        ([1, 3, 3, 2], 1),
        ([-math.inf, -math.inf], 0),
        ([math.inf, math.nan, math.nan], 1),
        ([0.0, -0.0, 0.0], 0),
        ([5], 0),
    ],
)
def test_arg_max_takes_the_first(call, values, index):
    assert call(extremes.ARG_MAX, np.array(values, np.float64), axis=0) == index


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


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32"])
def test_arg_max_along_axes(call, near, axis, dtype):
    x = np.random.default_rng(3).integers(0, 9, (6, 5, 3000)).astype(dtype)
    near(call(extremes.ARG_MAX, x, axis=axis), np.argmax(x, axis), "int32")


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (4, 700)])
def test_booleans(call, near, shape):
    x = np.random.default_rng(4).integers(0, 2, shape).astype(bool)
    axes = tuple(range(len(shape)))[-1:]
    near(call(reduction.ANY, x, axis=axes), np.any(x, axes), "bool")
    near(call(reduction.ALL, x, axis=axes), np.all(x, axes), "bool")
    near(call(reduction.SUM, x, axis=axes), np.sum(x, axes, dtype=np.int32), "int32")


def test_empty_walks(call, near):
    x = np.zeros((0, 3), np.float32)
    near(call(reduction.SUM, x, axis=0), np.zeros(3), "float32")
    near(call(reduction.PROD, x, axis=0), np.ones(3), "float32")
    near(call(reduction.MEAN, x, axis=0), np.full(3, math.nan), "float32")
    near(call(reduction.SUM, x, axis=1), np.zeros(0), "float32")


PRODUCTS = [
    ((1, 1), (1, 1)),
    ((5, 7), (7, 3)),
    ((17, 9), (9, 33)),
    ((3, 0), (0, 2)),
    ((0, 3), (3, 2)),
    ((2, 1, 5, 6), (3, 6, 10)),
    ((4, 3, 2, 20, 70), (2, 70, 21)),
    ((64, 130), (130, 10)),
    ((2, 4, 500), (2, 500, 8)),
]


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("left", "right"), PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int64"])
def test_matrix_product(call, near, left, right, turned, dtype):
    rng = np.random.default_rng(6)
    a, b = (
        (rng.normal(size=shape) * 60).astype(np.int64).astype(dtype) for shape in (left, right)
    )
    exact = a.dtype.kind != "f"
    wide = dtype if exact else np.longdouble
    expected = a.astype(wide) @ b.astype(wide)
    terms = max(2, left[-1])
    eps = 0 if exact else np.finfo(dtype).eps * math.log2(terms)
    bound = np.abs(a).astype(np.longdouble) @ np.abs(b).astype(np.longdouble) * eps
    operands = [
        np.ascontiguousarray(np.swapaxes(x, -1, -2)) if turn else x
        for x, turn in zip((a, b), turned, strict=True)
    ]
    flags = dict(zip(("transpose_a", "transpose_b"), turned, strict=True))
    near(call(matrix_products.BATCH_MAT_MUL, *operands, **flags), expected, dtype, bound=bound)
