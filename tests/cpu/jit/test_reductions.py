"""Large sums and extrema by loops, against Python's integers and exact sums."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

from tensorplug.ops import reduction as ops
from tensorplug.plugin import specs
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import reductions
from tensorplug_cpu.jit.loops import calls
from tensorplug_cpu.summation import groups, summer

pytestmark = pytest.mark.usefixtures("loops")

NAN, INF = math.nan, math.inf
UFUNCS = {"sum": np.add, "max": np.maximum, "min": np.minimum}
OPS = {"sum": ops.SUM, "prod": specs.PROD, "max": ops.MAX, "min": ops.MIN}
INTEGERS = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
SHAPES = [  # shape, axes: rows, columns, both; lengths around those of vectors and blocks
    ((40000,), (0,)),
    ((150001,), (0,)),
    ((3, 140000), (1,)),
    ((70, 500), (1,)),
    ((5000, 7), (1,)),
    ((4097, 8), (1,)),
    ((1100, 31), (1,)),
    ((1000, 33), (1,)),
    ((129, 256), (1,)),
    ((128, 257), (1,)),
    ((40000, 3), (0,)),
    ((30000, 70), (0,)),
    ((300, 300), (0,)),
    ((9, 4100), (0,)),
    ((17, 2048), (0,)),
    ((12, 70, 50), (1,)),
    ((2, 70, 300), (1,)),
    ((6, 5, 40, 50), (0, 2, 3)),
    ((6, 50, 4, 50), (0, 2)),
    ((4, 1, 10000), (0, 1)),
]


def fold(x, axes, result=None):
    """Add by the loops, which must exist."""
    run = reductions.folder(
        groups(x.shape, axes),
        x.dtype,
        np.dtype(result or x.dtype),
        lambda rest: np.add.reduce(rest, axis=1, dtype=rest.dtype),
    )
    assert run is not None
    shape = tuple(length for axis, length in enumerate(x.shape) if axis not in axes)
    with np.errstate(all="ignore"):  # as kernels run
        return run(x).reshape(shape)


def by_kernel(call, kind, x, axes):
    name = "reduction_indices" if kind == "max" else "axis"
    return call(OPS[kind], x, **{name: axes, "keep_dims": False})


def rows_of(x, axes):
    """Return the terms of each sum as a row of Python numbers, and the shape of the result."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape = tuple(x.shape[axis] for axis in kept)
    return x.transpose(*kept, *axes).reshape(math.prod(shape), -1), shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_sums_of_floats(shape, axes, dtype):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape)).astype(dtype)
    rows, left = rows_of(x, axes)
    exact = np.array([math.fsum(row) for row in rows.tolist()]).reshape(left)
    sizes = np.array([math.fsum(row) for row in np.abs(rows).tolist()]).reshape(left)
    found = fold(x, axes)
    assert (found.dtype, found.shape) == (np.dtype(dtype), left)
    eps = np.finfo(dtype).eps
    assert (np.abs(found - exact) <= eps * math.log2(rows.shape[1]) * sizes).all()
    if dtype == "float32":  # which float64 keeps nearly exact: one rounding
        assert (np.abs(found - exact) <= eps / 2 * np.abs(exact) + 1e-12 * sizes).all()


@pytest.mark.parametrize("result", ["float16", "float32"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_sums_of_halves(shape, axes, result):
    """Rounded once; a mean needs sums that float16 cannot hold."""
    x = np.random.default_rng(3).uniform(-9, 10, shape).astype("float16")
    x.reshape(-1)[-1] = 1e4
    rows, left = rows_of(x, axes)
    exact = np.array([math.fsum(row) for row in rows.tolist()]).reshape(left)
    with np.errstate(over="ignore"):
        found, expected = fold(x, axes, result), exact.astype(result)
    assert (found.dtype, found.shape) == (expected.dtype, left)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_counts(call, shape, axes):
    x = np.random.default_rng(3).random(shape) < 0.3
    rows, left = rows_of(x, axes)
    found = by_kernel(call, "sum", x, axes)
    assert (found.dtype, found.shape) == (np.dtype("int32"), left)
    np.testing.assert_array_equal(found.reshape(-1), [sum(row) for row in rows.tolist()])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("shape", "axes"), SHAPES[::3])
@pytest.mark.parametrize("kind", ["sum", "prod"])
def test_integers_wrap(call, shape, axes, dtype, kind):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(4).integers(limits.min, limits.max, shape, dtype, endpoint=True)
    rows, left = rows_of(x, axes)
    bits = 8 * x.itemsize
    if kind == "prod":
        x |= 1  # even factors soon make all products 0
        totals = [
            reduce(lambda a, b: a * b % 2**bits, row) for row in rows_of(x, axes)[0].tolist()
        ]
    else:
        totals = [sum(row) % 2**bits for row in rows.tolist()]
    expected = np.array([total % 2**bits for total in totals], f"uint{bits}")
    found = by_kernel(call, kind, x, axes)
    assert (found.dtype, found.shape) == (np.dtype(dtype), left)
    np.testing.assert_array_equal(found.view(expected.dtype).reshape(-1), expected)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", *INTEGERS])
@pytest.mark.parametrize(("shape", "axes"), SHAPES[1::3])
def test_extrema(call, shape, axes, dtype, kind):
    rng = np.random.default_rng(5)
    if dtype == "bool":
        x = rng.random(shape) < (0.0001 if kind == "max" else 0.9999)
    elif dtype.startswith("float"):
        x = rng.standard_normal(shape).astype(dtype)
        x.reshape(-1)[rng.integers(0, x.size, 3)] = INF, -INF, 0
    else:
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    rows, left = rows_of(x, axes)
    choose = max if kind == "max" else min
    expected = np.array([choose(row) for row in rows.tolist()], dtype).reshape(left)
    found = by_kernel(call, kind, x, axes)
    assert (found.dtype, found.shape) == (np.dtype(dtype), left)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_special_values(call, dtype, axis):
    """One in each of many sums, at another place in each."""
    big = np.finfo(dtype).max
    cases = {  # terms beside ones: sum, max, min
        (NAN,): (NAN, NAN, NAN),
        (INF,): (INF, INF, 1),
        (-INF,): (-INF, 1, -INF),
        (INF, -INF): (NAN, INF, -INF),
        (INF, NAN): (NAN, NAN, NAN),
        (big, big): (INF, big, 1),
        (-big, -big): (-INF, 1, -big),
    }
    length = 600
    for given, expected in cases.items():
        x = np.ones((length, length), dtype)
        rows = np.arange(length)
        for number, value in enumerate(given):
            x[rows, (rows + 301 * number) % length] = value
        x = x if axis else np.ascontiguousarray(x.T)
        for kind, wanted in zip(("sum", "max", "min"), expected, strict=True):
            found = by_kernel(call, kind, x, (axis,))
            np.testing.assert_array_equal(found, np.full(length, wanted, dtype))


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_that_cancel(axis):
    """Compensation keeps what a plain sum of float64 loses."""
    x = np.full((4000, 40), 0.1)
    x[0], x[-1] = 1e16, -1e16
    terms = x if axis == 0 else np.ascontiguousarray(x.T)
    exact = math.fsum([0.1] * 3998)
    assert (np.abs(fold(terms, (axis,)) - exact) <= 16).all()  # 8 roundings at 1e16


@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 60000), (1,)), ((2, 400000), (1,)), ((60000, 3), (0,))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_term_that_swallows_the_others(shape, axes, dtype):
    """When they come one by one. They are no whole numbers of its unit."""
    x = np.full(shape, 0.75, dtype)
    x[0 if axes == (0,) else (slice(None), 0)] = 4 / np.finfo(dtype).eps
    count = shape[axes[0]]
    exact = 4 / np.finfo(dtype).eps + 0.75 * (count - 1)
    bound = np.finfo(dtype).eps * math.log2(count) * exact
    found = fold(x, axes).astype("longdouble")
    assert (np.abs(found - exact) <= bound).all()


def test_no_terms_but_negative_zeros():
    x = np.full((300, 300), -0.0, np.float32)
    for axis in (0, 1):
        assert np.signbit(fold(x, (axis,))).all()


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 400000), (1,)),
        ((1100, 1100), (0,)),
        ((70, 1100), (0,)),
        ((9, 5000), (0,)),
        ((1100, 1100), (1,)),
        ((400000, 3), (0,)),
        ((400000, 3), (1,)),
        ((20, 300, 200), (1,)),
    ],
)
def test_any_number_of_threads(shape, axes, monkeypatch):
    """In the first run, as many as there are; in the second, one."""
    x = np.random.default_rng(6).standard_normal(shape)
    monkeypatch.setattr(reductions, "_SHARED", 0)
    monkeypatch.setattr(reductions, "_LARGE", 0)
    results = [fold(x, axes)]
    shared = []
    monkeypatch.setattr(calls, "together", lambda work: shared.append(work()))
    results.append(fold(x, axes))
    assert shared
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("kind", UFUNCS)
@pytest.mark.parametrize("keep_dims", [True, False])
def test_kernels(call, kind, keep_dims):
    """With both layouts of ``call``."""
    x = np.random.default_rng(7).integers(-1000, 1000, (50, 30, 40)).astype("int32")
    for axes in ((0,), (1, 2), (0, 2), (0, 1, 2)):
        name = "reduction_indices" if kind == "max" else "axis"
        found = call(OPS[kind], x, **{name: axes, "keep_dims": keep_dims})
        expected = UFUNCS[kind].reduce(x.astype(object), axis=axes, keepdims=keep_dims)
        assert (found.dtype, found.shape) == (x.dtype, np.shape(expected))
        np.testing.assert_array_equal(found, expected)


def test_where_there_is_no_loop():
    """Small arrays, complex numbers, and axes that no one sums."""
    cases = [
        ((100, 100), (0,), "float32"),
        ((300, 300), (0,), "complex64"),
        ((300, 300), (), "float32"),
    ]
    for shape, axes, dtype in cases:
        kind = np.dtype(dtype)
        assert reductions.folder(groups(shape, axes), kind, kind, np.add.reduce) is None


def test_without_llvm(monkeypatch):
    monkeypatch.setenv(JIT, "0")
    x = np.ones((300, 300), np.float32)
    kind = x.dtype
    assert reductions.folder(groups(x.shape, (0,)), kind, kind, np.add.reduce) is None
    found = summer(x.shape, (0,), kind, keep_dims=False)(x)
    np.testing.assert_array_equal(found, np.full(300, 300, kind))
