"""Gathers of many rows and sums by place by loops of their own, against Python's loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.plugin import OutOfRangeError, specs
from tensorplug_cpu import segments
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import gathers

pytestmark = pytest.mark.usefixtures("loops")

INDICES = ["int32", "int64", "uint32", "uint64"]
DTYPES = ["bool", "int8", "uint16", "float16", "float32", "float64", "complex64"]


def values(shape, dtype):
    rng = np.random.default_rng(1)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    bits = rng.bytes(math.prod(shape) * np.dtype(dtype).itemsize)
    return np.frombuffer(bits, dtype).reshape(shape)


def places(shape, length, index):
    low = 0 if index.startswith("u") else -length
    found = np.random.default_rng(2).integers(low, length, shape).astype(index)
    found.reshape(-1)[:2] = low, length - 1
    return found


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("after", [1, 2, 3, 4, 5, 16, 17, 33])
def test_rows(after, dtype, index, monkeypatch):
    """Of all widths: one element, one vector, several and a rest; NaN keep their bits."""
    monkeypatch.setattr(gathers, "_SHARED", 0)
    x = values((70, after), dtype)
    at = places((33001,), 70, index)
    found = gathers.gatherer((1, 1, 70, after), at.size, x.dtype, at.dtype)(x, at)
    assert (found.dtype, found.shape) == (x.dtype, (1, 1, at.size, after))
    rows = [row.tobytes() for row in x]
    expected = b"".join(rows[number] for number in at.tolist())
    assert found.tobytes() == expected


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "count"), [((3, 5, 40, 1), 3000), ((20, 1, 7, 4), 900), ((2, 9, 40, 37), 70)]
)
def test_batches(shape, count, dtype, monkeypatch):
    monkeypatch.setattr(gathers, "_SHARED", 0)
    monkeypatch.setenv(JIT, "always")
    batch, before, length, after = shape
    x = values(shape, dtype)
    at = places((batch, count), length, "int32")
    found = gathers.gatherer(shape, count, x.dtype, at.dtype)(x, at)
    assert (found.dtype, found.shape) == (x.dtype, (batch, before, count, after))
    for number in np.ndindex(batch, before):
        expected = b"".join(x[(*number, place)].tobytes() for place in at[number[0]].tolist())
        assert found[number].tobytes() == expected


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("after", [1, 4, 40])
@pytest.mark.parametrize("where", [0, 17, 39999])
def test_indices_out_of_range(call, after, index, where):
    """Wherever they stand, the kernel names them; no memory outside is read."""
    x = np.ones((50, after), "float32")
    limits = np.iinfo(index)
    for wrong in {50, 2**31 - 1, limits.max, *([-51, limits.min] if limits.min else [])}:
        at = np.zeros(40000, index)
        at[where] = wrong
        with pytest.raises(OutOfRangeError, match=str(wrong)):
            call(specs.GATHER_V2, x, at, axis=0, batch_dims=0)


def test_kernels(call):
    """With both layouts of ``call``, along every axis, in batches, and by several axes."""
    x = np.random.default_rng(3).standard_normal((30, 40, 8)).astype("float32")
    at = np.random.default_rng(4).integers(-8, 8, (30, 400)).astype("int32")
    for axis in range(3):
        found = call(specs.GATHER_V2, x, at, axis=axis, batch_dims=0)
        np.testing.assert_array_equal(
            found, np.moveaxis(np.moveaxis(x, axis, 0)[at], (0, 1), (axis, axis + 1))
        )
    for axis in (1, 2):
        found = call(specs.GATHER_V2, x, at, axis=axis, batch_dims=1)
        expected = np.stack([np.take(x[n], at[n], axis=axis - 1) for n in range(30)])
        np.testing.assert_array_equal(found, expected)
    first = at.reshape(-1, 1)
    np.testing.assert_array_equal(call(specs.GATHER_ND, x, first), x[first[:, 0]])


SUMS = [(1, 1, 40000), (700, 1, 40001), (300, 3, 20000), (40, 65, 700), (9, 512, 100)]


@pytest.mark.parametrize(("size", "width", "count"), SUMS)
def test_sums_of_floats(size, width, count, monkeypatch):
    """Exact sums by ``math.fsum``, rounded once; those without a row are 0."""
    monkeypatch.setattr(gathers, "_SHARED", 0)
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((count, width)) * 10.0 ** rng.integers(-5, 6, (count, 1))
    rows = rows.astype("float32")
    at = rng.integers(0, max(1, size - 1), count)
    assert gathers.row_adder(count, width, size, rows.dtype) is not None
    found = segments.row_sums(at, rows, size)
    assert (found.dtype, found.shape) == (rows.dtype, (size, width))
    for place in {0, size // 2, size - 1}:
        for column in {0, width // 2, width - 1}:
            terms = rows[at == place, column].tolist()
            exact, most = math.fsum(terms), math.fsum(map(abs, terms))
            off = abs(found[place, column] - exact)
            assert off <= abs(exact) * 2**-24 + 1e-12 * most


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint64"])
@pytest.mark.parametrize(("size", "width", "count"), SUMS[1:4])
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
    monkeypatch.setattr(gathers, "_SHARED", 0)
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


def test_segment_sums(call):
    x = np.random.default_rng(9).integers(-9, 9, (4000, 20)).astype("int32")
    at = np.random.default_rng(10).integers(0, 7, 4000).astype("int32")
    found = call(specs.UNSORTED_SEGMENT_SUM, x, at, num_segments=8)
    expected = [x[at == number].sum(axis=0) for number in range(8)]
    np.testing.assert_array_equal(found, expected)
