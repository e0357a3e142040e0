"""Running sums and products of large arrays by loops of their own."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tensorplug.ops import cumulative as ops
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import scans

pytestmark = pytest.mark.usefixtures("loops")

NAN, INF = math.nan, math.inf
INTEGERS = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
SHAPES = [  # shape, axis: lengths and columns around those of vectors and blocks
    ((33000,), 0),
    ((40, 1000), 1),
    ((5000, 7), 1),
    ((17000, 2), 1),
    ((33000, 1), 1),
    ((5000, 7), 0),
    ((2, 20000), 0),
    ((33, 1031), 0),
    ((30, 40, 50), 1),
    ((3, 12, 1025), 1),
]
WAYS = list(itertools.product([False, True], repeat=2))  # exclusive, reverse


def scan(kind, x, axis, *, exclusive=False, reverse=False):
    """Scan by a loop, which must exist."""
    run = scans.scanner(kind, x.shape, axis, x.dtype, exclusive=exclusive, reverse=reverse)
    assert run is not None
    result = run(x)
    assert (result.dtype, result.shape) == (x.dtype, x.shape)
    return result


def expected(kind, rows, *, exclusive, reverse):
    """Return running results of lists, by Python's numbers."""
    start, combine = (0, int.__add__) if kind == "sum" else (1, int.__mul__)
    found = []
    for row in rows:
        given = row[::-1] if reverse else row
        given = [start, *given[:-1]] if exclusive else given
        running = list(itertools.accumulate(given, combine))
        found.append(running[::-1] if reverse else running)
    return found


@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES[1::3])
def test_integers_wrap(shape, axis, dtype, exclusive, reverse, kind):
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if kind == "prod":
        x |= 1  # even factors soon make all products 0
    found = scan(kind, x, axis, exclusive=exclusive, reverse=reverse)
    bits = 8 * x.itemsize
    rows = np.moveaxis(x, axis, -1).reshape(-1, shape[axis])
    few = [0, len(rows) // 2, len(rows) - 1]
    short = rows[few][:, :300] if not reverse else rows[few][:, -300:]
    wanted = expected(kind, short.tolist(), exclusive=exclusive, reverse=reverse)
    wanted = np.array([[number % 2**bits for number in row] for row in wanted], f"uint{bits}")
    result = np.moveaxis(found, axis, -1).reshape(-1, shape[axis])[few]
    result = result[:, :300] if not reverse else result[:, -300:]
    np.testing.assert_array_equal(result.view(wanted.dtype), wanted)


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sums(shape, axis, dtype, exclusive, reverse):
    """Within one rounding for each of log2(n), of the exact sums by integers."""
    rng = np.random.default_rng(2)
    unit = 2**-30
    numbers = np.round(rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 5, shape) / unit)
    x = (numbers * unit).astype(dtype)
    found = scan("sum", x, axis, exclusive=exclusive, reverse=reverse)
    whole = np.moveaxis((x.astype("float64") / unit).astype("int64"), axis, -1)
    given, result = whole, np.moveaxis(found, axis, -1)
    if reverse:
        given, result = given[..., ::-1], result[..., ::-1]
    if exclusive:
        assert not result[..., 0].any()
        given, result = given[..., :-1], result[..., 1:]
    exact = np.cumsum(given, axis=-1)  # below 2**63: no rounding
    sizes = np.cumsum(np.abs(given), axis=-1).astype("float64") * unit
    off = np.abs((result.astype("float64") / unit).astype("longdouble") - exact) * unit
    eps = np.finfo(dtype).eps
    terms = np.maximum(np.arange(1, given.shape[-1] + 1), 2)
    assert (off <= eps * np.log2(terms) * sizes).all()
    if dtype == "float32":
        assert (off <= eps / 2 * np.abs(exact * unit) + 1e-12 * sizes).all()


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_products(shape, axis, exclusive, reverse):
    """Of powers of two, which are exact, and of numbers near 1, by logarithms."""
    rng = np.random.default_rng(3)
    powers = rng.integers(-20, 21, shape)
    powers -= np.roll(powers, 1, axis)  # neighbours cancel
    for numbers in (2.0**powers, 1 + rng.standard_normal(shape) / 500):
        x = numbers.astype("float32")
        found = np.moveaxis(scan("prod", x, axis, exclusive=exclusive, reverse=reverse), axis, -1)
        logs = np.log2(np.moveaxis(x, axis, -1).astype("longdouble"))
        if reverse:
            logs, found = logs[..., ::-1], found[..., ::-1]
        if exclusive:
            assert (found[..., 0] == 1).all()
            logs, found = logs[..., :-1], found[..., 1:]
        wanted = 2 ** np.cumsum(logs, axis=-1)
        np.testing.assert_allclose(found.astype("longdouble"), wanted, rtol=7e-8)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(dtype, axis, reverse):
    """From their place on, and not before; in each line at another place."""
    big = float(np.finfo(dtype).max)
    cases = {  # what stands where in ones -> the running sum from there on
        ((0, NAN),): (0, NAN),
        ((0, INF),): (0, INF),
        ((0, INF), (3, -INF)): (3, NAN),
        ((0, INF), (13, -INF)): (13, NAN),
        ((0, big), (1, big)): (1, INF),
        ((0, -big), (9, -big)): (9, -INF),
    }
    lines, length = 200, 250
    for places, (start, value) in cases.items():
        x = np.ones((lines, length), dtype)
        for shift, number in places:
            x[np.arange(lines), np.arange(lines) + shift] = number
        given = x[:, ::-1] if reverse else x
        given = np.ascontiguousarray(given if axis else given.T)
        found = scan("sum", given, axis, reverse=reverse)
        found = found if axis else found.T
        found = found[:, ::-1] if reverse else found
        for line in range(0, lines, 7):
            at = line + start
            np.testing.assert_array_equal(found[line, at:], np.full(length - at, value, dtype))
            np.testing.assert_array_equal(found[line, :line], np.arange(1, line + 1))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_term_that_swallows_the_others(dtype, axis):
    x = np.full((40, 3000), 0.3, dtype)
    x[:, 0] = 4 / np.finfo(dtype).eps
    found = scan("sum", x if axis else np.ascontiguousarray(x.T), axis)
    found = (found if axis else found.T).astype("longdouble")
    exact = x[0, 0].astype("longdouble") + x[0, 1].astype("longdouble") * np.arange(3000)
    terms = np.maximum(np.arange(1, 3001), 2)
    assert (np.abs(found - exact) <= np.finfo(dtype).eps * np.log2(terms) * exact).all()


def test_products_of_extreme_numbers():
    """Four of the largest or least numbers do not leave the range of float64."""
    big, tiny = np.float32(2.0**127), np.float32(2.0**-149)
    x = np.tile(np.array([big, big, big, big, tiny, tiny, tiny, tiny, 1], np.float32), 4000)
    found = scan("prod", x[None, :9].repeat(4000, axis=0), 1)[0]
    np.testing.assert_array_equal(
        found, np.array([big, INF, INF, INF, INF, INF, 2.0**61, 2.0**-88, 2.0**-88], np.float32)
    )
    row = np.ones(40, np.float32)
    row[:6], row[6], row[16:26], row[26] = tiny, 2.0**-100, big, tiny
    found = scan("prod", row[None].repeat(1000, axis=0), 1)[999]
    np.testing.assert_array_equal(found[26:], np.full(14, 2.0**127, np.float32))


@pytest.mark.parametrize("reverse", [False, True])
def test_negative_zeros(reverse):
    x = np.full((200, 200), -0.0, np.float32)
    for axis in (0, 1):
        assert np.signbit(scan("sum", x, axis, reverse=reverse)).all()


@pytest.mark.parametrize(
    ("shape", "axis"), [((20, 30000), 1), ((800, 900), 0), ((9, 300, 300), 1)]
)
def test_any_number_of_threads(shape, axis, monkeypatch):
    """In the first run, as many as there are; in the second, one."""
    x = np.random.default_rng(6).standard_normal(shape)
    monkeypatch.setattr(scans, "_SHARED", 0)
    parts, run = [], parallel.in_parts

    def counted(work, count, *, shared):
        assert shared
        parts.append(count)
        run(work, count, shared=not parts[1:])

    monkeypatch.setattr(parallel, "in_parts", counted)
    np.testing.assert_array_equal(scan("sum", x, axis), scan("sum", x, axis))
    assert len(parts) == 2


@pytest.mark.parametrize("spec", [ops.CUMSUM, ops.CUMPROD])
def test_kernels(call, spec):
    """With both layouts of ``call``."""
    x = np.random.default_rng(7).integers(1, 9, (50, 30, 40)).astype("int16")
    function = np.cumsum if spec is ops.CUMSUM else np.cumprod
    for axis in range(3):
        found = call(spec, x, axis=axis)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, function(x, axis, dtype="int16"))


def test_where_there_is_no_loop(monkeypatch):
    def missing(kind, shape, dtype):
        made = scans.scanner(kind, shape, 0, np.dtype(dtype), exclusive=False, reverse=False)
        return made is None

    assert missing("sum", (100, 100), "float32")
    assert missing("sum", (300, 300), "complex64")
    assert missing("prod", (300, 300), "float64")
    assert not missing("sum", (300, 300), "float32")
    monkeypatch.setenv(JIT, "0")
    assert missing("sum", (300, 300), "float32")
