"""The largest of each column, and places in sorted sequences, by loops."""

from __future__ import annotations

import bisect
import math

import numpy as np
import pytest

from tensorplug.plugin import specs
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import positions

pytestmark = pytest.mark.usefixtures("loops")

NAN, INF = math.nan, math.inf
INTEGERS = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]


def sample(dtype, shape, *, few):
    """Return numbers with many ties or few, and all extremes."""
    rng = np.random.default_rng(12)
    if dtype in FLOATS:
        pool = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, -NAN]
        x = rng.choice(pool, shape) if few else rng.standard_normal(shape)
        return np.asarray(x).astype(dtype)
    limits = np.iinfo(dtype)
    if few:
        return rng.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def rank(number):
    """Return a key with the order of NumPy's sorts."""
    return (1, 0) if number != number else (0, number)  # noqa: PLR0124  # NaN


@pytest.mark.parametrize("few", [True, False], ids=["ties", "distinct"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("shape", [(1, 8, 4100), (1, 9000, 5), (30, 70, 33), (2, 40, 1031)])
@pytest.mark.parametrize(("spec", "least"), [(specs.ARG_MAX, False), (specs.ARG_MIN, True)])
def test_columns(call, shape, dtype, few, spec, least):
    x = sample(dtype, shape, few=few)
    found = call(spec, x, axis=1)
    assert (found.dtype, found.shape) == (np.dtype("int32"), (shape[0], shape[2]))
    rng = np.random.default_rng(1)
    places = {(0, 0), (shape[0] - 1, shape[2] - 1)}
    places |= {(int(rng.integers(shape[0])), int(rng.integers(shape[2]))) for _ in range(40)}
    for matrix, column in places:
        numbers = x[matrix, :, column].tolist()

        def key(at, numbers=numbers):
            first, second = rank(numbers[at])
            return (first, -second) if least else (first, second)

        assert found[matrix, column] == max(range(len(numbers)), key=key)


@pytest.mark.parametrize(("spec", "least"), [(specs.ARG_MAX, False), (specs.ARG_MIN, True)])
def test_kernels(call, spec, least):
    x = sample("float32", (40, 50, 30), few=True)
    for axis in range(3):
        found = call(spec, x, axis=axis)
        moved = np.moveaxis(x, axis, -1)
        assert (found.dtype, found.shape) == (np.dtype("int32"), moved.shape[:-1])
        expected = np.argmin(moved, axis=-1) if least else np.argmax(moved, axis=-1)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("few", [True, False], ids=["ties", "distinct"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(
    ("rows", "length", "count"),
    [(1, 1, 33000), (1, 2, 33001), (1, 1000, 33007), (40, 77, 900), (3, 64, 12000)],
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_search(call, rows, length, count, dtype, few, side):
    """Against Python's bisection."""
    x = np.sort(sample(dtype, (rows, length), few=few), axis=-1)
    values = sample(dtype, (rows, count), few=few)
    values[:, : min(length, count)] = x[:, :count]
    given = (x[0], values[0]) if rows == 1 else (x, values)
    found = call(specs.SEARCH_SORTED, *given, side=side)
    assert (found.dtype, found.shape) == (np.dtype("int32"), given[1].shape)
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    for row in {0, rows - 1}:
        numbers = [rank(number) for number in x[row].tolist()]
        wanted = [find(numbers, rank(number)) for number in values[row, :2000].tolist()]
        np.testing.assert_array_equal(found.reshape(rows, count)[row, :2000], wanted)
    np.testing.assert_array_equal(
        found.reshape(rows, count)[-1, -50:],
        [find(numbers, rank(number)) for number in values[-1, -50:].tolist()],
    )


def test_any_number_of_threads(monkeypatch):
    x = sample("float32", (1, 150000), few=False)
    sequence = np.sort(x[:, :999])
    results = []
    for limit in (0, 1 << 60):
        monkeypatch.setattr(positions, "_MANY", limit)
        results.append(positions.searcher(1, 999, x.size, x.dtype, right=False)(sequence, x))
    np.testing.assert_array_equal(*results)


def test_where_there_is_no_loop(monkeypatch):
    single = np.dtype(np.float32)
    assert positions.searcher(1, 0, 40000, single, right=False) is None
    assert positions.searcher(1, 50, 100, single, right=False) is None
    monkeypatch.setenv(JIT, "0")
    assert positions.searcher(1, 50, 40000, single, right=False) is None
