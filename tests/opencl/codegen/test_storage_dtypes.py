"""Dtypes for storage: a byte for each element, whose bits are computed by integer arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.storage_formats import (
    FLOATS,
    INF,
    MOVES,
    NAN,
    STORAGE,
    TOO_LARGE,
    WHOLE,
    moving,
    nearest,
    numbers,
)

import tensorplug as tp
from tensorplug.plugin import Expression, Group, GroupInput, GroupOutput, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.templates import sized
from tensorplug_opencl.kernels import complexes

RNG = np.random.default_rng(5)
POWERS = dt.float8_e8m0fnu
NEAREST_EVEN = [dtype for dtype in FLOATS if dtype is not POWERS]
REALS = [np.dtype(f"float{bits}") for bits in (16, 32, 64)]


@pytest.fixture(params=["vectors", "elements"])
def device(request, backend):
    """Return a backend in the form for CPUs, and in the form for GPUs."""
    backend.runtime.is_cpu = request.param == "vectors"
    if request.node.callspec.params.get("source") not in (None, *map(str, backend.dtypes)):
        pytest.skip("the device lacks the dtype")
    return backend


def of_bits(dtype: dt.DType) -> Any:
    return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)


def converted(device: Any, x: Any, dtype: dt.DType) -> Any:
    """Return x in ``dtype``; elements for storage as bytes."""
    source, target = TensorType(dt.of(x.dtype), x.shape), TensorType(dtype, x.shape)
    if dt.COMPLEX & {source.dtype, dtype}:
        cast = complexes.cast(source, dtype=dtype, backend=device, out=target)
        made = cast(device.from_host(x))
    else:
        spans, value = (True,) * x.ndim, expressions.parameter(0, source.dtype)
        output = GroupOutput(Expression("cast", dtype, (value,)), target, spans)
        cast = device.compile_form(
            sized(Group("Cast", x.shape, (GroupInput(source, spans),), (), (output,)))
        )
        (made,) = cast(device.from_host(x))
    assert made.type == target
    actual = device.to_host(made)
    assert actual.dtype == dtype.numpy
    return actual.view(np.uint8) if dtype in dt.STORAGE else actual


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
@pytest.mark.parametrize("source", ["float32", "float64", "complex64"])  # here, the target
def test_what_bits_stand_for(device, dtype, source):
    expected = np.arange(1 << dtype.bits) + 0.0
    if dtype in WHOLE:
        expected = (expected - dtype.min) % (1 << dtype.bits) + dtype.min
    else:
        expected = numbers(dtype)
    actual = converted(device, of_bits(dtype), dt.of(source)).real
    np.testing.assert_array_equal(actual, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_bits_to_numbers_and_back(device, dtype):
    wide = converted(device, of_bits(dtype), dt.float32)
    back = converted(device, wide, dtype)
    known = ~np.isnan(wide)
    np.testing.assert_array_equal(back[known], np.arange(1 << dtype.bits)[known])
    rounded = np.isnan(converted(device, back.view(dtype.numpy), dt.float32))
    np.testing.assert_array_equal(rounded, ~known)


@pytest.mark.parametrize("dtype", NEAREST_EVEN, ids=str)
@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int64"])
def test_numbers_are_rounded_once_to_the_nearest_even(device, dtype, source):
    finite = np.unique(numbers(dtype)[np.isfinite(numbers(dtype))])
    middles = (finite[1:] + finite[:-1]) / 2
    operand = np.concatenate([finite, middles, RNG.normal(size=300), RNG.uniform(-1, 1, 99) * 500])
    operand = operand[np.abs(operand) <= finite.max()].astype(source)
    if source != "int64":
        near = [np.nextafter(middles.astype(source), to) for to in (-INF, INF)]
        operand = np.concatenate([operand, *near]).astype(source)
    bits = {value: pattern for pattern, value in reversed([*enumerate(numbers(dtype))])}
    expected = [bits[nearest(dtype, float(x))] for x in operand]
    negative_0 = 1 << dtype.bits - 1
    actual = converted(device, operand, dtype)
    np.testing.assert_array_equal(np.where(actual == negative_0, 0, actual), expected)


@pytest.mark.parametrize("source", ["float32", "float64", "uint8", "int32", "uint64"])
def test_powers_are_the_nearest_and_halves_go_up(device, source):
    whole = dt.of(source) in dt.INTEGER
    exponents = np.arange(0 if whole else -126, dt.of(source).bits if whole else 127)
    factors = [1, 1.25, 1.5 - 2**-20, 1.5, 1.75]
    exact = np.concatenate([2.0**exponents * factor for factor in factors])
    exact = exact[exact <= float(dt.of(source).max)]
    operand = exact.astype(source)
    size, power = np.frexp(operand.astype(np.float64))
    expected = np.where(operand == 0, 255, power + 126 + (size >= 0.75))
    np.testing.assert_array_equal(converted(device, operand, POWERS), expected)
    if not whole:
        odd = np.array([0.0, -0.0, -1.0, INF, -INF, NAN, 1.49 * 2.0**127, 1.5 * 2.0**127], source)
        made = converted(device, odd, POWERS)
        np.testing.assert_array_equal(made, [255] * 6 + [254, 255])


def test_large_integers_are_rounded_once(device):
    just_below = np.array([3 * 2**40 - 1, 3 * 2**40, 3 * 2**61 - 1, 2**63 - 1, -5, 0])
    actual = converted(device, just_below, POWERS)
    np.testing.assert_array_equal(actual, [127 + 41, 127 + 42, 127 + 62, 127 + 63, 255, 255])
    operand = np.array([17, 19, -17, 2**20, -(2**40), 2**24 + 1])
    actual = converted(device, operand, dt.float8_e5m2)
    np.testing.assert_array_equal(
        actual.view(dt.float8_e5m2.numpy).astype("f4"), np.float32([16, 20, -16, INF, -INF, INF])
    )


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_numbers_that_do_not_fit(device, dtype, source):
    large = {"float16": 6e4}.get(source, 1e9)
    x = np.array([large, -INF, NAN], source)
    actual = converted(device, x, dtype).view(dtype.numpy).astype(np.float32)
    expected = np.float32(TOO_LARGE[dtype.name][0])
    if source == "float16":
        whole = int(x[0]) % (1 << dtype.bits) if dtype in WHOLE else 57344
        expected[0] = {POWERS: 2.0**16, dt.float8_e5m2: whole, dt.float8_e5m2fnuz: whole}.get(
            dtype, whole if dtype in WHOLE else expected[0]
        )
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
@pytest.mark.parametrize("source", ["int8", "uint16", "float32", "int64"])
def test_integers_wrap_and_their_unused_bits_are_0(device, dtype, source):
    operand = np.arange(0 if source == "uint16" else -40, 40)
    actual = converted(device, operand.astype(source), dtype)
    np.testing.assert_array_equal(actual, operand % (1 << dtype.bits))


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_movement_keeps_all_bits(target, dtype, name):
    here, there = MOVES[name]
    array = moving(dtype)
    expected = there(array.view(np.uint8))
    with tp.use_backend("opencl"):
        actual = here(tp.asarray(array))
        assert (actual.dtype, actual.shape) == (dtype, expected.shape)
        np.testing.assert_array_equal(actual.numpy().view(np.uint8), expected)


def test_conversion_needs_no_numpy_dtype(target):
    with tp.use_backend("opencl"):
        told = tp.explain("Cast", [tp.ones((3,))], {"dtype": "int4"}, backend="opencl")
    assert told.how == "native"


@pytest.mark.parametrize("dtype", [dtype for dtype in STORAGE if dtype.bits < 8], ids=str)
@pytest.mark.parametrize("wide", ["uint8", "int32", "float64", "uint4", "complex64"])
def test_bits_are_packed_and_unpacked(target, dtype, wide):
    raw = RNG.integers(0, 256, (5, 3, 16), np.uint8)
    x = raw.view(wide) if wide != "uint4" else (raw & 15).view(dt.uint4.numpy)
    with tp.use_backend("opencl"):
        tensor = tp.asarray(x)[1:, :, 1:]  # a part of the memory
        narrow = tp.bitcast(tensor, dtype)
        back = tp.bitcast(narrow, wide).numpy()
        told = tp.explain("Bitcast", [tensor], {"dtype": dtype.name})
    assert told.how == "native"
    bits = np.unpackbits(np.ascontiguousarray(x[1:, :, 1:]).view(np.uint8), bitorder="little")
    if wide == "uint4":
        bits = bits.reshape(-1, 8)[:, :4]
    places = bits.reshape(-1, dtype.bits) @ (1 << np.arange(dtype.bits))
    np.testing.assert_array_equal(narrow.numpy().reshape(-1).view(np.uint8), places)
    np.testing.assert_array_equal(back, x[1:, :, 1:])


PRODUCTS = {  # a, b, whether each has a scale
    "matrices": ((5, 7), (7, 4), False),
    "row": ((1, 300), (300, 17), False),
    "column": ((64, 700), (700, 1), False),
    "batches": ((2, 1, 33, 65), (3, 65, 9), True),
    "long": ((4, 5000), (5000, 4), True),
    "nothing": ((2, 0), (0, 3), False),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4", "float8_e4m3fn"])
def test_products(target, dtype, name):
    *shapes, scaled = PRODUCTS[name]
    low, high = {"int8": (-128, 128), "uint8": (0, 256)}.get(dtype, (-8, 8))
    a, b = (RNG.integers(low, high, shape).astype(np.int64) for shape in shapes)
    scales = (0.5, 0.25) if scaled else ()
    with tp.use_backend("opencl"):
        actual = tp.quantized_matmul(*(tp.asarray(x, dtype=dtype) for x in (a, b)), *scales)
        expected = (a @ b) * (0.125 if scaled else 1)
        whole = not scaled and not dtype.startswith("float")
        assert actual.dtype.name == ("int32" if whole else "float32")
        np.testing.assert_array_equal(actual.numpy(), expected.astype(actual.dtype.numpy))


def test_bytes_are_multiplied_without_copies(target):
    x, y = TensorType(dt.int8, (16, 16)), TensorType(dt.float32, ())  # few rows are one kernel
    with tp.use_backend("opencl"):
        plain = tp.explain("QuantizedMatMul", [x, x, None, None, None, None, None])
        scaled = tp.explain("QuantizedMatMul", [x, x, y, y, None, None, None])
    assert plain.how == "native"
    assert any(inner.call.startswith("QuantizedMatMul") for inner in scaled.inner), scaled
