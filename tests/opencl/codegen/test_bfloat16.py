"""bfloat16: 16 bits in memory, float in arithmetic, one rounding where it is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    Reduction,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes

RNG = np.random.default_rng(3)
BFLOAT16, FLOAT32 = dt.bfloat16, dt.float32
parameter, apply, cast = expressions.parameter, expressions.apply, expressions.cast


@pytest.fixture(params=["vectors", "elements"])
def device(request, backend):
    """Return a backend in the form for CPUs, and in the form for GPUs."""
    backend.runtime.is_cpu = request.param == "vectors"
    return backend


def of_bits(bits: Any) -> Any:
    return np.asarray(bits, np.uint16).view(BFLOAT16.numpy)


def exact(x: Any) -> Any:
    """Return bfloat16 as float32: the upper half of its bits."""
    return (np.ascontiguousarray(x).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def rounded(x: Any) -> Any:
    """Return the bits of the nearest bfloat16 to float32, the even one of two, and which are NaN.

    The nearest is found by comparing distances, in double, not by adding to the bits.
    """
    low = np.ascontiguousarray(x).view(np.uint32) & 0xFFFF0000
    high = low + np.uint32(0x10000)
    with np.errstate(all="ignore"):
        value = x.astype(np.float64)
        ends = [each.view(np.float32).astype(np.float64) for each in (low, high)]
        ends[1] = np.where(np.isinf(ends[1]), np.copysign(2.0**128, ends[0]), ends[1])
        below, above = (np.abs(value - end) for end in ends)
        even = (low >> 16) % 2 == 0
        up = (above < below) | ((above == below) & ~even)
    chosen = np.where(up & np.isfinite(x), high, low)
    return (chosen >> 16).astype(np.uint16), np.isnan(x)


def check_bits(found: Any, expected: Any, undefined: Any) -> None:
    """Compare bits, and that what must be NaN is one."""
    assert (found.dtype, found.shape) == (BFLOAT16.numpy, expected.shape)
    np.testing.assert_array_equal(found.view(np.uint16)[~undefined], expected[~undefined])
    assert np.isnan(found.astype(np.float64))[undefined].all()


def run(backend: Any, outputs: Any, *arrays: Any, reductions: Any = (), axis: int = -1) -> Any:
    """Run a group over arrays of one shape."""
    shape = arrays[0].shape
    full = (True,) * len(shape)
    axes = tuple(at == axis % len(shape) for at in range(len(shape)))
    group = Group(
        "test",
        shape,
        tuple(GroupInput(TensorType(dt.of(x.dtype), shape), full) for x in arrays),
        tuple(Reduction(op, each, axes) for op, each in reductions),
        tuple(GroupOutput(each, TensorType(each.dtype, shape), full) for each in outputs),
    )
    call = backend.compile_group(group)
    assert call is not None
    return [backend.to_host(buffer) for buffer in call(*map(backend.from_host, arrays))]


@pytest.mark.parametrize("count", [1, 3, 17, 1031])
def test_a_cast_back_keeps_the_rounding(device, count):
    x = RNG.standard_normal(count).astype(np.float32)
    narrow = cast(parameter(0, FLOAT32), BFLOAT16)
    (actual,) = run(device, [cast(narrow, FLOAT32)], x)
    np.testing.assert_array_equal(actual, exact(rounded(x)[0]))


@pytest.mark.parametrize("count", [1, 19, 1031])
def test_arithmetic_is_in_float_and_rounded_once(device, count):
    a, b = (of_bits(rounded(RNG.standard_normal(count).astype(np.float32))[0]) for _ in "ab")
    x, y = parameter(0, BFLOAT16), parameter(1, BFLOAT16)
    (actual,) = run(device, [apply("add", apply("multiply", x, y), x)], a, b)
    wide = exact(a) * exact(b) + exact(a)
    check_bits(actual, *rounded(wide))


@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 37), 1), ((37, 5), 0), ((3, 9000), 1), ((9,), 0)]
)
def test_rows_are_added_up_in_float32(device, shape, axis):
    x = of_bits(rounded(RNG.uniform(0, 1, shape).astype(np.float32).ravel())[0]).reshape(shape)
    element = cast(parameter(0, BFLOAT16), FLOAT32)
    total = parameter(1, FLOAT32)
    shares = cast(apply("divide", element, total), BFLOAT16)
    (actual,) = run(device, [shares], x, reductions=[("sum", element)], axis=axis)
    wide = exact(x.ravel()).reshape(shape).astype(np.float64)
    right = wide / wide.sum(axis, keepdims=True)
    error = np.abs(actual.astype(np.float64) - right)
    assert (error <= 2.0**-8 * right * (1 + 2.0**-10)).all()  # half an ulp, at most


def test_kernels_without_conversions_decline_it():
    with pytest.raises(KernelRefusedError, match="not with bfloat16"):
        ctypes.stored(BFLOAT16)


def test_sums_and_products_do_not_stick(call):
    ones = of_bits(np.full(1 << 16, 0x3F80))
    assert float(call(specs.SUM, ones)) == 1 << 16
    row = ones.reshape(1, -1)
    product = call(specs.BATCH_MAT_MUL, row, row, transpose_b=True)
    assert (product.dtype, product.tolist()) == (BFLOAT16.numpy, [[1 << 16]])
