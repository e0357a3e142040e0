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
NUMBERS = [bits for bits in range(1 << 16) if bits & 0x7FFF <= 0x7F80]  # all but NaN
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


def every_kind_of_bits() -> Any:
    """Return floats of random bits, and each tie between two bfloat16 with its neighbours."""
    whole = np.arange(1 << 16, dtype=np.uint32) << 16
    ties = [whole | low for low in (0, 0x7FFF, 0x8000, 0x8001)]
    anything = RNG.integers(0, 1 << 32, 10_001, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([*ties, anything]).view(np.float32)


def test_float32_is_rounded_to_the_nearest(device):
    x = every_kind_of_bits()
    (actual,) = run(device, [cast(parameter(0, FLOAT32), BFLOAT16)], x)
    check_bits(actual, *rounded(x))


@pytest.mark.parametrize("count", [1, 3, 17, 1031])
def test_a_cast_back_keeps_the_rounding(device, count):
    x = RNG.standard_normal(count).astype(np.float32)
    narrow = cast(parameter(0, FLOAT32), BFLOAT16)
    (actual,) = run(device, [cast(narrow, FLOAT32)], x)
    np.testing.assert_array_equal(actual, exact(rounded(x)[0]))


def test_every_bfloat16_is_exact_in_wider_dtypes(device):
    x = of_bits(NUMBERS)
    for dtype in {FLOAT32, dt.float64} & device.dtypes:
        (actual,) = run(device, [cast(parameter(0, BFLOAT16), dtype)], x)
        assert actual.dtype == dtype.numpy
        np.testing.assert_array_equal(actual, exact(x).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", sorted(dt.INTEGER | dt.BOOL, key=str), ids=str)
def test_integers(device, dtype):
    limits = (0, 2) if dtype is dt.bool_ else (max(dtype.min, -(1 << 23)), min(dtype.max, 1 << 23))
    whole = RNG.integers(*limits, 1031).astype(dtype.numpy)
    (actual,) = run(device, [cast(parameter(0, dtype), BFLOAT16)], whole)
    check_bits(actual, *rounded(whole.astype(np.float32)))
    near = of_bits(rounded(RNG.uniform(*limits, 1031).astype(np.float32))[0])
    (back,) = run(device, [cast(parameter(0, BFLOAT16), dtype)], near)
    np.testing.assert_array_equal(back, exact(near).astype(dtype.numpy))


def test_bits_stay_in_a_bitcast(device):
    x = of_bits(NUMBERS)
    (words,) = run(device, [expressions.bitcast(parameter(0, BFLOAT16), dt.int16)], x)
    np.testing.assert_array_equal(words.view(np.uint16), x.view(np.uint16))
    (back,) = run(device, [expressions.bitcast(parameter(0, dt.int16), BFLOAT16)], words)
    np.testing.assert_array_equal(back.view(np.uint16), x.view(np.uint16))


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


def test_movement_keeps_every_bit(call):
    x = of_bits(RNG.permutation(NUMBERS)[:6000]).reshape(60, 100)
    moved = {
        "turned": (call(specs.TRANSPOSE, x, perm=(1, 0)), x.T),
        "cut": (call(specs.SLICE, x, begin=(3, 7), size=(40, 11)), x[3:43, 7:18]),
        "joined": (call(specs.CONCAT, [x, x], axis=1), np.concatenate([x, x], axis=1)),
        "gathered": (call(specs.GATHER_V2, x, np.array([5, 0, 5], np.int32)), x[[5, 0, 5]]),
        "padded": (call(specs.PAD_V2, x, paddings=((1, 2), (0, 3))), np.pad(x, ((1, 2), (0, 3)))),
    }
    for how, (actual, expected) in moved.items():
        assert (actual.dtype, actual.shape) == (x.dtype, expected.shape), how
        assert actual.tobytes() == np.ascontiguousarray(expected).tobytes(), how


def test_sums_and_products_do_not_stick(call):
    ones = of_bits(np.full(1 << 16, 0x3F80))
    assert float(call(specs.SUM, ones)) == 1 << 16
    row = ones.reshape(1, -1)
    product = call(specs.BATCH_MAT_MUL, row, row, transpose_b=True)
    assert (product.dtype, product.tolist()) == (BFLOAT16.numpy, [[1 << 16]])


def test_uniform_numbers_are_the_upper_bits_of_words(call):
    key = np.array([1, 2, 3, 4], np.uint32)
    words = call(specs.RANDOM_BITS, key, shape=(1000,))
    actual = call(specs.RANDOM_UNIFORM, key, shape=(1000,), dtype="bfloat16")
    assert actual.dtype == BFLOAT16.numpy
    np.testing.assert_array_equal(actual.astype(np.float64), (words >> 24) / 256)


@pytest.mark.parametrize("source", ["float64", "int32", "uint32", "int64", "uint64"])
def test_wide_numbers_are_rounded_once(device, source):
    """Beside a tie of bfloat16, where float32 would already have rounded to the tie."""
    scale = {"float64": 2.0**-8, "int32": 2.0**22, "uint32": 2.0**23, "int64": 2.0**54}
    ties = np.array([0x101, 0x103, 0x1FD]) * scale.get(source, 2.0**55)
    exact, step = (float, 2.0**-40) if source == "float64" else (int, 1)
    operand = np.array([exact(tie) + beside for tie in ties for beside in (-step, step)], source)
    up = np.array([False, True] * 3)
    lower = np.float32(ties).view(np.uint32) >> 16
    expected = np.repeat(lower, 2) + up
    root = cast(parameter(0, dt.of(source)), BFLOAT16)
    (actual,) = run(device, [root], operand)
    np.testing.assert_array_equal(actual.view(np.uint16), expected)
    if source in ("float64", "int32", "int64"):
        (actual,) = run(device, [root], -operand)
        np.testing.assert_array_equal(actual.view(np.uint16), expected | 0x8000)
