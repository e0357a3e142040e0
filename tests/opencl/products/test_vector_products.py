"""Vectors times matrices, as on CPUs and as on GPUs, against exact integers and long doubles."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.ops.matrix_products import BATCH_MAT_MUL
from tensorplug.ops.nn import fused
from tensorplug_loops.forms import matrix_products
from tensorplug_loops.forms.table import Operand
from tensorplug_loops.templates import sized
from tensorplug_opencl.groups import loops

if TYPE_CHECKING:
    from tensorplug_opencl.backend import OpenCLBackend

# Inner elements, columns: around vectors, blocks of vectors, rows taken together, groups, strips.
SIZES = [
    (1, 1),
    (1, 40),
    (7, 1),
    (8, 3),
    (9, 16),
    (16, 31),
    (17, 33),
    (255, 3),
    (257, 20),
    (40, 1023),
    (3, 1025),
    (70_001, 1),
    (2049, 33),
]


@pytest.fixture(params=["cpu", "gpu", "gpu of small groups"])
def device(request, backend) -> OpenCLBackend:
    """Return a backend that treats its device as that kind."""
    if request.param != "cpu":
        runtime = backend.runtime
        runtime.description = replace(
            runtime.description,
            neighbours=True,
            vector_bytes=0,
            group_size=64 if request.param == "gpu" else 8,
            shared_bytes=1 << 14,
            cores=4,
        )
    return backend


def product(
    device: OpenCLBackend, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], before: int = 0
) -> np.ndarray[Any, Any]:
    """Return the product of two arrays that are dense, or whose last two axes are swapped."""
    buffers, types, turned = [], [], []
    for factor in (a, b):
        swapped = not factor.flags.c_contiguous
        dense = np.ascontiguousarray(factor.swapaxes(-1, -2) if swapped else factor)
        padded = np.concatenate([np.full(before, 99, dense.dtype), dense.ravel()])
        buffers.append(device.from_host(padded).view(dense.shape, before))
        types.append(TensorType(dt.of(dense.dtype), dense.shape))
        turned.append(swapped)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    form = matrix_products.product(
        *(Operand(type_, at) for at, type_ in enumerate(types)),
        TensorType(dt.of(a.dtype), (*batch, a.shape[-2], b.shape[-1])),
        transpose_a=turned[0],
        transpose_b=turned[1],
    )
    run = loops.compile_group(sized(form.group), device.runtime)
    assert run is not None
    (result,) = run(*buffers)
    return device.to_host(result)


def numbers(*shape: int, dtype: str = "float32", turned: bool = False) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(21)
    if turned:
        return rng.integers(-9, 9, (*shape[:-2], *shape[:-3:-1])).astype(dtype).swapaxes(-1, -2)
    return rng.integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("vector_first", [False, True])
def test_sizes_around_every_border(device, vector_first, turned):
    for inner, columns in SIZES:
        vector = numbers(1, inner)
        matrix = numbers(inner, columns, turned=turned)
        a, b = (vector, matrix) if vector_first else (matrix.T, vector.T)
        actual = product(device, a, b, before=3)
        np.testing.assert_array_equal(actual, a.astype(float) @ b, f"{inner}, {columns}")


@pytest.mark.parametrize(
    ("dtype", "turned"), [("int8", True), ("int32", False), ("float64", True)]
)
def test_other_dtypes_and_integers_that_wrap(device, dtype, turned):
    rng = np.random.default_rng(22)
    a, b = numbers(1, 300, dtype=dtype), numbers(300, 20, dtype=dtype, turned=turned)
    if a.dtype.kind != "f":
        limits = np.iinfo(dtype)
        a = rng.integers(limits.min, limits.max, a.shape, dtype, endpoint=True)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(product(device, a, b), a @ b)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("columns", [3, 70])
def test_sums_keep_their_bound(device, columns, turned):
    rng = np.random.default_rng(23)
    for inner in (5, 64, 1000, 30_000):
        a = rng.uniform(0.5, 1, (1, inner)).astype(np.float32)  # of one sign: nothing cancels
        b = np.full((columns, inner), 1 / 3, np.float32)
        b = b.T if turned else np.ascontiguousarray(b.T)
        exact = a.astype(np.longdouble) @ b
        off = np.abs(product(device, a, b) - exact)
        assert (off <= np.finfo(np.float32).eps * math.log2(inner) * exact).all(), inner


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("at", [0, 100, 4999])
def test_infinities_and_nan_stay_where_they_are(device, at, turned):
    a, b = np.ones((1, 5000), np.float32), np.ones((5000, 20), np.float32)
    b[at, 1], b[at, 2], b[at, 19], b[at - 1, 19] = np.inf, np.nan, np.inf, -np.inf
    expected = np.full((1, 20), 5000.0)
    expected[0, [1, 2, 19]] = np.inf, np.nan, np.nan
    factor = np.ascontiguousarray(b.T).T if turned else b
    np.testing.assert_array_equal(product(device, a, factor), expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 1, 40), (5, 40, 30)),
        ((5, 30, 40), (5, 40, 1)),
        ((2, 1, 1, 40), (3, 40, 30)),
        ((30, 40), (3, 40, 1)),
    ],
)
def test_batches_broadcast(device, a, b):
    left, right = numbers(*a), numbers(*b)
    np.testing.assert_array_equal(product(device, left, right), left.astype(float) @ right)


@pytest.mark.parametrize("shapes", [((1, 50), (50, 30)), ((30, 50), (50, 1))])
@pytest.mark.parametrize("inner", [50, 40_000])
def test_bias_and_activation(call, shapes, inner):
    a, b = (numbers(*(inner if size == 50 else size for size in shape)) for shape in shapes)
    bias, slope = numbers(b.shape[1]), numbers(b.shape[1])
    actual = call(fused.FUSED_MAT_MUL, a, b, bias, slope, activation="prelu")
    total = a.astype(float) @ b + bias
    np.testing.assert_array_equal(actual, np.where(total < 0, total * slope, total))


@pytest.mark.parametrize("shapes", [((1, 0), (0, 3)), ((1, 3), (3, 0)), ((0, 3), (3, 1))])
def test_nothing_to_multiply(call, shapes):
    a, b = (np.zeros(shape, np.float32) for shape in shapes)
    actual = call(BATCH_MAT_MUL, a, b)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(actual, a @ b)
