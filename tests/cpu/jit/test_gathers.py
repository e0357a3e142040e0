"""Gathers of many rows by loops of their own, against Python's loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.plugin import OutOfRangeError, specs
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
