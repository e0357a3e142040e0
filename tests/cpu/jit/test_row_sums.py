"""Sums of rows by target by loops of their own, against exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.plugin import specs
from tensorplug_cpu import segments
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.families import row_sums

pytestmark = pytest.mark.usefixtures("loops")

SUMS = [
    *((1, 1, 40000), (700, 1, 40001), (300, 3, 20000), (40, 65, 700), (9, 512, 100)),
    *((9000, 40, 3000), (2100, 128, 2600), (2500, 17, 2400)),  # ordered first
]


@pytest.mark.parametrize(("size", "width", "count"), SUMS)
def test_sums_of_floats(size, width, count, monkeypatch):
    """Exact sums by ``math.fsum``, rounded once; those without a row are 0."""
    monkeypatch.setattr(row_sums, "_SHARED", 0)
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((count, width)) * 10.0 ** rng.integers(-5, 6, (count, 1))
    rows = rows.astype("float32")
    at = rng.integers(0, max(1, size - 1), count)
    assert row_sums.row_adder(count, width, size, rows.dtype) is not None
    found = segments.row_sums(at, rows, size)
    assert (found.dtype, found.shape) == (rows.dtype, (size, width))
    for place in {0, size // 2, size - 1}:
        for column in {0, width // 2, width - 1}:
            terms = rows[at == place, column].tolist()
            exact, most = math.fsum(terms), math.fsum(map(abs, terms))
            off = abs(found[place, column] - exact)
            assert off <= abs(exact) * 2**-24 + 1e-12 * most


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint64"])
@pytest.mark.parametrize(("size", "width", "count"), [*SUMS[1:4], SUMS[5]])
def test_sums_of_integers_wrap(size, width, count, dtype):
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(6)
    rows = rng.integers(limits.min, limits.max, (count, width), dtype, endpoint=True)
    at = rng.integers(0, size, count).astype("int32")
    found = segments.row_sums(at, rows, size)
    assert (found.dtype, found.shape) == (rows.dtype, (size, width))
    bits = 8 * rows.itemsize
    for place in (0, size // 2, size - 1):
        for column in {0, width - 1}:
            total = sum(rows[at == place, column].tolist())
            assert (int(found[place, column]) - total) % 2**bits == 0


def test_sums_with_special_values():
    rows = np.ones((40000, 2), "float32")
    at = np.arange(40000) % 5
    rows[1, 0], rows[2], rows[7, 1] = math.nan, math.inf, -math.inf
    found = segments.row_sums(at, rows, 6)
    nan, inf = math.nan, math.inf
    np.testing.assert_array_equal(
        found, [[8000, 8000], [nan, 8000], [inf, nan], [8000, 8000], [8000, 8000], [0, 0]]
    )


def test_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(row_sums, "_SHARED", 0)
    rows = np.random.default_rng(7).standard_normal((3000, 200)).astype("float32")
    at = np.random.default_rng(8).integers(0, 90, 3000)
    shared, run = segments.row_sums(at, rows, 90), parallel.in_parts
    alone = []

    def once(work, count, **_options):
        alone.append(count)
        run(work, count, shared=False)

    monkeypatch.setattr(parallel, "in_parts", once)
    np.testing.assert_array_equal(segments.row_sums(at, rows, 90), shared)
    assert alone == [200]


def test_any_number_of_threads_with_ordered_rows(monkeypatch):
    rows = np.random.default_rng(7).standard_normal((3000, 50)).astype("float32")
    at = np.random.default_rng(8).integers(0, 4000, 3000)
    found = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(row_sums, "_SHARED", least)
        found.append(segments.row_sums(at, rows, 4000))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("size", [5000, 20])
def test_one_row_for_all_targets(size):
    row = np.arange(40, dtype="float32")
    at = np.arange(3000) % (size - 1)
    found = segments.row_sums(at, np.broadcast_to(row, (3000, 40)), size)
    np.testing.assert_array_equal(found, np.outer(np.bincount(at, minlength=size), row))


def test_many_more_targets_than_rows():
    assert row_sums.row_adder(1000, 64, 1 << 20, np.dtype("float32")) is None


def test_segment_sums(call):
    x = np.random.default_rng(9).integers(-9, 9, (4000, 20)).astype("int32")
    at = np.random.default_rng(10).integers(0, 7, 4000).astype("int32")
    found = call(specs.UNSORTED_SEGMENT_SUM, x, at, num_segments=8)
    expected = [x[at == number].sum(axis=0) for number in range(8)]
    np.testing.assert_array_equal(found, expected)
