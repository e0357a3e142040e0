"""Kernels along rows, in the forms for CPUs and GPUs; long rows take multiple passes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug_loops.kernels import kernel_table
from tensorplug_opencl.ordering import merging

if TYPE_CHECKING:
    from tensorplug_opencl.backend import OpenCLBackend

WALKS = [
    ((70_001,), (0,)),
    ((3, 5001), (1,)),
    ((5001, 3), (0,)),
    ((700, 37), (0,)),
    ((2, 300, 19), (1,)),
    ((9, 6, 65), (0, 2)),
    ((6, 9, 5), (0, 2)),
    ((40, 7), (1,)),
    ((1, 1), (0,)),
]


@pytest.fixture(params=["cpu", "gpu", "small groups"])
def device(request, backend) -> OpenCLBackend:
    """Return a backend that treats its device as that kind."""
    runtime = backend.runtime
    runtime.is_cpu = request.param == "cpu"
    runtime.parallel_items = 1 << 12
    return backend


@pytest.fixture(autouse=True)
def groups(request):
    if "small groups" in request.node.name:
        runtime = request.getfixturevalue("device").runtime
        runtime.description = replace(runtime.description, group_size=8, cores=1)


def upload(backend: OpenCLBackend, x: Any) -> Any:
    return backend.from_host(x)


def numbers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def run(backend: OpenCLBackend, name: str, x: Any, out: TensorType, **attributes: Any) -> Any:
    """Run the kernel of a form; return its results."""
    table = kernel_table(type(backend).compile_form, sized=True)
    (entry,) = (each for each in table if each.spec.name == name)
    kernel = entry.function(
        TensorType(dt.of(x.dtype), x.shape), **attributes, backend=backend, out=out
    )
    return backend.to_host(kernel(upload(backend, x)))


def reduce(backend: OpenCLBackend, name: str, x: Any, axes: Any, dtype: Any = None) -> Any:
    """Reduce along axes."""
    shape = tuple(n for axis, n in enumerate(x.shape) if axis not in axes)
    attribute = "reduction_indices" if name == "Max" else "axis"
    axis = axes[0] if name.startswith("Arg") else axes
    out = TensorType(dtype or dt.of(x.dtype), shape)
    return run(backend, name, x, out, **{attribute: axis})


def scan(backend: OpenCLBackend, name: str, x: Any, **attributes: Any) -> Any:
    """Scan along axis 1."""
    out = TensorType(dt.of(x.dtype), x.shape)
    options = {"exclusive": False, "reverse": False, **attributes}
    return run(backend, name, x, out, axis=1, **options)


@pytest.mark.parametrize(("shape", "axes"), WALKS)
def test_sums_keep_their_bound(device, shape, axes):
    x = numbers(shape)
    wide = x.astype(np.longdouble)
    length = math.prod(shape[axis] for axis in axes)
    bound = np.abs(wide).sum(axes) * math.log2(max(length, 2)) * 2**-23
    off = np.abs(reduce(device, "Sum", x, axes) - wide.sum(axes))
    assert (off <= bound).all()


@pytest.mark.parametrize(("shape", "axes"), WALKS)
def test_extremes_and_their_places(device, shape, axes):
    x = numbers(shape)
    x.reshape(-1)[:: max(1, x.size // 3)] = math.nan
    np.testing.assert_array_equal(reduce(device, "Min", x, axes), x.min(axes))
    np.testing.assert_array_equal(reduce(device, "Max", x, axes), x.max(axes))
    if len(axes) == 1:
        for name, expected in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            actual = reduce(device, name, x, axes, dt.int32)
            np.testing.assert_array_equal(actual, expected(x, axes[0]))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", "int64"])
@pytest.mark.parametrize("length", [512, 3000, 70_001])
def test_the_first_of_equal_extremes(device, dtype, length):
    """The extremes are in one block, in several, in the last elements, and not numbers."""
    x = np.random.default_rng(2).integers(20, 90, (5, length)).astype(dtype)
    x[1, length // 3 :: 97], x[1, length // 5 :: 83] = 100, 7
    x[2, -1], x[2, -2] = 100, 7
    x[3, 0], x[3, 1] = 100, 7
    if dtype == "float32":
        x[4, length // 2 :: 100] = math.nan
    for name, expected in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        actual = reduce(device, name, x, (1,), dt.int32)
        np.testing.assert_array_equal(actual, expected(x, 1))


@pytest.mark.parametrize("shape", [(1, 70_001, 1), (3, 2500, 1), (1, 5001, 3), (2, 700, 37)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_running_sums_keep_their_bound(device, shape, reverse, exclusive):
    x = numbers(shape)

    def running(terms: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        ordered = np.flip(terms, 1) if reverse else terms
        sums = np.cumsum(ordered, axis=1)
        if exclusive:
            sums = np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], axis=1)
        return np.flip(sums, 1) if reverse else sums

    wide = x.astype(np.longdouble)
    bound = running(np.abs(wide)) * math.log2(shape[1]) * 2**-23
    actual = scan(device, "Cumsum", x, exclusive=exclusive, reverse=reverse)
    assert (np.abs(actual - running(wide)) <= bound).all()


def test_running_integers_wrap(device):
    x = np.random.default_rng(2).integers(-100, 100, (2, 3001, 2), np.int8)
    actual = scan(device, "Cumprod", x | 1)
    np.testing.assert_array_equal(actual, np.cumprod(x | 1, axis=1, dtype=np.int8))


def test_groups_that_a_kernel_may_not_have_are_halved(backend, refusing):
    runtime = backend.runtime
    runtime.is_cpu = False
    refused = refusing(runtime, 4)
    x = numbers((2, 700))
    np.testing.assert_array_equal(reduce(backend, "Max", x, (1,)), x.max(1))
    sort = merging.make_sorter(runtime, dt.float32, 2, 700, descending=False)
    np.testing.assert_array_equal(backend.to_host(sort(upload(backend, x))), np.argsort(x, axis=1))
    ones = np.ones((1, 700, 1), np.int32)
    actual = scan(backend, "Cumsum", ones).reshape(-1)
    np.testing.assert_array_equal(actual, np.arange(1, 701))
    assert {8, 128} <= set(refused)
