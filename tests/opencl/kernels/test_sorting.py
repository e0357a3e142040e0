"""Sorting and selecting, in the forms for CPUs and GPUs, against NumPy's stable sort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.ops import sorting
from tensorplug_opencl.ordering import blocks, merging, selection
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from tensorplug_opencl.backend import OpenCLBackend

# Less than a vector, one, registers, more than these, a block, and several blocks and merges.
ROWS = [(1, 1), (700, 3), (3, 16), (70, 67), (3, 1000), (2, 4096), (1, 70_001)]
DTYPES = ["bool", "int8", "uint32", "uint64", "float64"]
SORTS = [
    *((rows, "float32", way) for rows in ROWS for way in (False, True)),
    *((rows, "int64", True) for rows in ROWS[-3:]),
    *(((2, 1500), dtype, False) for dtype in DTYPES),
]

# Less than a block, a few blocks, and parts.
SELECTIONS = [
    *((rows, "float32") for rows in ((3, 40), (700, 67), (1, 4127), (1, 300_001), (4, 70_007))),
    *(((2, 4097), dtype) for dtype in ("bool", "int8", "uint32", "int64", "float64")),
    ((1, 70_001), "int64"),
]


@pytest.fixture(params=["cpu", "gpu", "small groups", "short vectors"])
def device(request, backend, monkeypatch) -> OpenCLBackend:
    """Return a backend that treats its device as that kind."""
    backend.runtime.is_cpu = request.param in ("cpu", "short vectors")
    if request.param == "small groups":
        monkeypatch.setattr(blocks, "NETWORK", 6)
        monkeypatch.setattr(selection, "GROUP", 20)
    if request.param == "short vectors":
        backend.runtime.limits = backend.runtime.limits._replace(vector_bytes=16)
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 12)
        monkeypatch.setitem(merging.CHUNK, True, 64)
        monkeypatch.setattr(selection, "PARTS", 2)
        monkeypatch.setattr(rows, "PART", 1)
    return backend


def make_rows(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Return elements with many equals, the type's limits, and what is special about floats."""
    rng = np.random.default_rng(3)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.5, -1.5, np.finfo(dtype).max]
        tiny = np.finfo(dtype).smallest_normal
        return rng.choice(np.array([*special, tiny, -tiny], dtype), shape)
    limits = np.iinfo(dtype)
    near = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1], dtype)
    return rng.choice(near, shape)


def sort_by_numpy(x: np.ndarray[Any, Any], *, descending: bool) -> np.ndarray[Any, Any]:
    """Return the indices in stable order along the last axis."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    backwards = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return x.shape[-1] - 1 - backwards


@pytest.mark.parametrize(("shape", "dtype", "descending"), SORTS)
def test_sorts_are_stable(device, shape, dtype, descending):
    count, length = shape
    x = make_rows(shape, dtype)
    expected = sort_by_numpy(x, descending=descending)
    buffer, runtime, type_ = device.from_host(x), device.runtime, dt.of(x.dtype)
    sort = merging.make_sorter(runtime, type_, count, length, descending=descending)
    actual = device.to_host(sort(buffer))
    assert actual.dtype == np.int32
    np.testing.assert_array_equal(actual, expected)
    values = merging.make_value_sorter(runtime, type_, count, length, descending=descending)
    assert (values is not None) == runtime.is_cpu
    if values is not None:
        actual = device.to_host(values(buffer))
        assert actual.dtype == x.dtype
        reference = np.take_along_axis(x, expected, -1)
        np.testing.assert_array_equal(actual, reference)
        if x.dtype.kind == "f":
            zeros = reference == 0
            np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(reference[zeros]))


@pytest.mark.parametrize(("shape", "dtype"), SELECTIONS)
@pytest.mark.parametrize("k", [1, 10, 100])
def test_selects_the_first_of_equals(device, shape, dtype, k):
    """Random elements, many equals, and rows in which each element beats all before it."""
    device.runtime.parallel_items = 1 << 12
    count, length = shape
    type_ = dt.of(np.dtype(dtype))
    select = selection.make_selector(device.runtime, type_, count, length, k)
    if select is None:
        assert k > length // selection.SHARE or (k > 4 and not device.runtime.is_cpu)
        return
    rng = np.random.default_rng(4)
    rising = np.tile(np.arange(length), (count, 1))
    often = rising % (length // 32 + 1)  # largest in the last elements of parts, if there are 32
    random = rng.integers(0, 100, shape)
    for x in (make_rows(shape, dtype), *(y.astype(dtype) for y in (random, rising, often))):
        values = device.runtime.empty(TensorType(type_, (count, k)))
        indices = device.runtime.empty(TensorType(dt.int32, (count, k)))
        select(device.from_host(x), values, indices)
        expected = sort_by_numpy(x, descending=True)[:, :k]
        np.testing.assert_array_equal(device.to_host(indices), expected)
        np.testing.assert_array_equal(device.to_host(values), np.take_along_axis(x, expected, -1))


def test_padding_comes_after_the_largest_keys(device):
    """The largest integer's key equals the key of the padding of the last block."""
    x = np.full((2, 5), 2**32 - 1, np.uint32)
    sort = merging.make_sorter(device.runtime, dt.uint32, 2, 5, descending=False)
    np.testing.assert_array_equal(device.to_host(sort(device.from_host(x))), [[*range(5)]] * 2)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("descending", [False, True])
def test_any_axis(call, near, axis, descending):
    x = make_rows((17, 40, 5), "float32")
    moved = np.moveaxis(x, axis, -1)
    order = sort_by_numpy(moved, descending=descending)
    actual = call(sorting.ARG_SORT, x, axis=axis, descending=descending, stable=True)
    near(actual, np.moveaxis(order, -1, axis), "int32")
    actual = call(sorting.SORT, x, axis=axis, descending=descending, stable=True)
    near(actual, np.moveaxis(np.take_along_axis(moved, order, -1), -1, axis), "float32")
