"""Copies of arrays whose short last axis was another one in memory, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.families import interleaving
from tensorplug_cpu.jit.loops import calls
from tensorplug_cpu.jit.loops.calls import address

pytest.importorskip("llvmlite")

# A shape, and the place that its last axis had.
ARRAYS = [
    ((3, 5, 34, 4), 2),
    ((2, 7, 9, 3), 1),  # an image of three channels, which were first
    ((1, 40, 2), 1),
    ((70, 8), 0),
    ((2, 3, 4, 5, 7), 3),
    ((2, 3, 4, 5, 7), 1),
    ((6, 11, 129, 6), 2),
    ((5, 4, 5), 1),
]
DTYPES = ["bool", "int8", "float16", "int32", "float32", "float64", "complex64"]


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """On the CPU, for any size."""
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "always")
    with tp.use_backend("cpu"):
        yield


def drawn(shape, dtype):
    rng = np.random.default_rng(3)
    return rng.integers(0, 100, shape).astype(dtype)


def moved(array, axis):
    """Return equal elements, in the order in which the last axis was ``axis``."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, -1, axis)), axis, -1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), ARRAYS)
def test_copies(shape, axis, dtype):
    array = drawn(shape, dtype)
    found = interleaving.find_interleaver(shape, array.dtype)(moved(array, axis))
    assert (found.dtype, found.shape) == (array.dtype, shape)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
@pytest.mark.parametrize(("shape", "axis"), ARRAYS)
def test_the_kernel_of_reshape(shape, axis, dtype):
    array = drawn(shape, "float32" if dtype == "bfloat16" else dtype)
    first = tp.asarray(np.moveaxis(array, -1, axis).copy())
    if dtype == "bfloat16":
        first = tp.astype(first, tp.bfloat16)
    found = tp.reshape(tp.moveaxis(first, axis, -1), (-1,))
    assert str(found.dtype) == dtype
    found = tp.astype(found, tp.float32) if dtype == "bfloat16" else found
    np.testing.assert_array_equal(found.numpy(), array.reshape(-1))


def test_other_orders():
    """They are NumPy's, and so are views."""
    array = drawn((4, 6, 5, 3), "f4")
    interleave = interleaving.find_interleaver(array.shape, array.dtype)
    assert interleave(array[::-1]) is None
    assert interleave(array.transpose(1, 0, 2, 3).copy().transpose(1, 0, 2, 3)) is None
    x = tp.asarray(array)
    for found, expected in (
        (x[::-1], array[::-1]),
        (tp.permute_dims(x, (1, 0, 2, 3)), array.transpose(1, 0, 2, 3)),
        (tp.permute_dims(x, (3, 1, 0, 2)), array.transpose(3, 1, 0, 2)),
    ):
        flat = tp.reshape(found, (-1, 2)).numpy()
        np.testing.assert_array_equal(flat, expected.reshape(-1, 2))
    unaligned = np.empty(array.nbytes + 1, np.uint8)[1:].view("f4").reshape(3, 4, 6, 5)
    unaligned[...] = np.moveaxis(array, -1, 0)
    assert interleave(np.moveaxis(unaligned, 0, -1)) is None


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((70,), "f4"), ((70, 9), "f4"), ((70, 1), "f4"), ((70, 4), "c16"), ((0, 4), "f4")],
)
def test_what_numpy_copies(shape, dtype):
    assert interleaving.find_interleaver(shape, np.dtype(dtype)) is None


def test_short_arrays_stay_with_numpy(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "1")
    assert interleaving.find_interleaver((100, 20, 4), np.dtype("f4")) is None
    assert interleaving.find_interleaver((100, 40, 4), np.dtype("f4")) is not None


def test_threads(monkeypatch):
    monkeypatch.setattr(calls, "_SHARED", 1)
    array = drawn((200, 30, 4), "f4")
    found = interleaving.find_interleaver(array.shape, array.dtype)(moved(array, 1))
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "array",
    [
        np.empty(0),
        np.empty(()),
        np.arange(12.0).reshape(3, 4)[1:, 2],
        np.broadcast_to(np.float32(1), (3, 3)),
        np.ones(5)[::-1],
    ],
)
@pytest.mark.parametrize("reads", [True, False])
def test_addresses(array, reads, monkeypatch):
    monkeypatch.setattr("tensorplug_cpu.jit.loops.addresses.reads_arrays", lambda: reads)
    assert address(array) == array.__array_interface__["data"][0]
