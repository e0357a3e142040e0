"""Quantization: values by hand, straight-through slopes, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import same

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    OutOfRangeError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("on_the_cpu")


INF, NAN = float("inf"), float("nan")
BY_HAND = [  # x, scale, zero point, dtype, quantized
    ([0.25, 0.75, -0.25, -0.75, 1.25], 0.5, None, None, [0, 2, 0, -2, 2]),
    (
        [63.5, 63.75, 64.25, -64.0, -64.25, -64.5],
        0.5,
        None,
        "int8",
        [127, 127, 127, -128, -128, -128],
    ),
    ([0.5, 1.5, 2.5], 1, 1, "uint8", [1, 3, 3]),  # rounded before the zero point is added
    ([-3, 0, 252, 253, 1e9], 1, 2, "uint8", [0, 2, 254, 255, 255]),
    ([INF, -INF, NAN], 0.1, 7, "int8", [127, -128, 0]),
    ([1e9, -1e9, 3], 1.0, None, "int16", [32767, -32768, 3]),
    ([1e9, -1e9, 3], 1.0, 5, "uint16", [65535, 0, 8]),
    ([7, 8], 2.0, None, None, [4, 4]),  # integers
]


@pytest.mark.parametrize(("x", "scale", "zero_point", "dtype", "expected"), BY_HAND)
def test_quantize_by_hand(x, scale, zero_point, dtype, expected):
    same(tp.quantize(x, scale, zero_point, dtype=dtype), expected, dtype or "int8")


REFUSED = [
    (lambda: tp.quantize([1.0, 2.0], [1.0, 1.0, 1.0]), ShapeError, "divide that of x"),
    (lambda: tp.quantize([1.0], [[1.0]]), ShapeError, r"\[1, 1\] does not fit \[1\]"),
    (
        lambda: tp.quantize([1.0], 1.0, dtype="int32"),
        DTypeError,
        "int8, uint16, uint2, uint4, uint8, got int32",
    ),
    (
        lambda: tp.quantize([1.0], 1.0, np.uint8(3), dtype="int8"),
        DTypeError,
        "zero_point must be int8, got uint8",
    ),
    (lambda: tp.quantize([1.0], 1.0, 300), ArgumentError, "300"),
    (lambda: tp.quantize([[1.0]], [1.0], axis=2), OutOfRangeError, "axis"),
    (lambda: tp.dequantize([1.0], 1.0), DTypeError, "input 'x' is float32"),
    (lambda: tp.dequantize(np.int8([1]), 1), DTypeError, "input 'scale'"),
    (lambda: tp.dequantize(np.int8([1]), 1.0, dtype="int8"), DTypeError, "floating"),
    (lambda: tp.dequantize(np.int32([1]), 1.0, np.int8(1)), DTypeError, "int32"),
    (lambda: tp.dequantize(np.int8([1]), 1.0, offset=[1.0]), ShapeError, r"\[1\] is not \[\]"),
    (lambda: tp.dequantize(np.int8([1]), 1.0, offset=[[1.0]], axis=3), OutOfRangeError, "axis"),
    (lambda: tp.quantized_matmul(np.int8([[1]]), np.int8([1])), ShapeError, "rank 2"),
    (lambda: tp.quantized_matmul(np.int8([[1]]), [[1.0]]), ArgumentError, "needs b_scale"),
    (lambda: tp.quantized_matmul(np.int16([[1]]), np.int8([[1]])), DTypeError, "int16"),
    (
        lambda: tp.quantized_matmul(
            np.int8([[1] * 6]), np.int8([[1]] * 6), np.ones((1, 2)), np.ones((3, 1))
        ),
        ShapeError,
        "2 blocks of a, but 3 blocks of b",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_errors_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_result_has_the_dtype_of_the_scales():
    a = np.int8([[3, -4]])
    for dtype in ("float16", "float32", "float64"):
        scale = np.array(0.5, dtype)
        same(tp.quantized_matmul(a, a.T, scale), [[12.5]], dtype)
        same(tp.dequantize(a, scale), [[1.5, -2]], dtype)
    same(tp.quantized_matmul(a, a.T, 0.5, dtype="float16"), [[12.5]], "float16")


NARROW = [  # numbers, scale, dtype, what they stand for
    ([0.3, -1.0, 9.0, NAN], 0.5, "int4", [0.5, -1.0, 3.5, 0]),
    ([0.3, -1.0, 9.0], 0.5, "uint2", [0.5, 0.0, 1.5]),
    ([0.3, -1.3, 2.5, 99, -99], 1.0, "float4_e2m1fn", [0.5, -1.5, 2, 6, -6]),
    ([0.3, 449.0, 1e9, -INF], 2.0, "float8_e4m3fn", [0.3125, 448, 896, -896]),
    ([0.3, 1e9], 0.5, "float8_e5m2", [0.3125, 28672]),
]


@pytest.mark.parametrize(("x", "scale", "dtype", "expected"), NARROW)
def test_storage_dtypes_by_hand(x, scale, dtype, expected):
    quantized = tp.quantize(x, scale, dtype=dtype)
    assert quantized.dtype.name == dtype
    same(tp.dequantize(quantized, scale), expected, "float32")
    same(tp.fake_quantize(x, scale, dtype=dtype), expected, "float32")


# Gradients -------------------------------------------------------------------------------

STRAIGHT = [  # x, scale, zero point, dtype, slope in x, slope in the scale
    ([0.25, 1.0], 0.5, None, "int8", [1, 1], -0.5),
    ([0.1], 1.0, None, "int8", [1], -0.1),
    ([63.5, 63.75, 63.9, 99], 0.5, None, "int8", [1, 0, 0, 0], 0 + 127 + 127 + 127),
    ([63.5, 63.7, 99], 0.5, None, "int8", [1, 1, 0], 0 - 0.4 + 127),
    ([-64.0, -64.2, -99], 0.5, None, "int8", [1, 1, 0], 0 + 0.4 - 128),
    ([-1.0, -1.6, 126.0], 1.0, 1, "uint8", [1, 0, 1], 0 - 1 + 0),
    ([300.0], 1.0, 5, "uint8", [0], 250),
    ([0.3, 9.0], 1.0, None, "int4", [1, 0], -0.3 + 7),
    ([0.3, 449.0], 1.0, None, "float8_e4m3fn", [1, 0], 0.0125 + 448),
]


@pytest.mark.parametrize(("x", "scale", "zero_point", "dtype", "in_x", "in_scale"), STRAIGHT)
def test_gradients_go_straight_through_and_stop_where_clipped(
    x, scale, zero_point, dtype, in_x, in_scale
):
    def total(x, scale):
        return tp.sum(tp.fake_quantize(x, scale, zero_point, dtype=dtype))

    operands = tp.asarray(x, dtype=tp.float32), tp.asarray(scale, dtype=tp.float32)
    dx, dscale = tp.grad(total, argnums=(0, 1))(*operands)
    same(dx, in_x, "float32")
    assert (dscale.dtype, dscale.shape) == (tp.float32, ())
    np.testing.assert_allclose(dscale.numpy(), in_scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int4", "uint2"])
def test_numbers_are_faked_where_a_backend_lacks_their_dtype(dtype):
    x = [0.3, -9.0, 1.25, 99.0, float("nan")]
    with tp.use_backend("minimal"):
        found = tp.fake_quantize(x, 0.5, dtype=dtype)
    about = tp.iinfo(dtype)
    expected = [min(max(round(n / 0.5), about.min), about.max) * 0.5 for n in x[:-1]]
    assert found.tolist() == [*expected, 0.0]


def test_weights_alone_have_the_gradients_of_what_they_stand_for():
    rng = np.random.default_rng(3)
    x = tp.asarray(rng.standard_normal((3, 8)).astype("float32"))
    held, scale = rng.integers(0, 256, (5, 4)).astype("uint8"), tp.ones((5, 2)) * 0.5
    offset = tp.asarray(rng.standard_normal((5, 2)).astype("float32"))
    numbers = tp.reshape(tp.bitcast(held, "int4"), (5, 8))
    meant = tp.dequantize(numbers, scale, offset=offset)
    packed = {"transpose_b": True, "b_packed": "int4"}

    def quantized(x, scale, offset):
        y = tp.quantized_matmul(x, held, None, scale, b_offset=offset, **packed)
        return tp.sum(y**2)

    dx, dscale, doffset = tp.grad(quantized, argnums=(0, 1, 2))(x, scale, offset)
    wanted, dw = tp.grad(lambda x, w: tp.sum((x @ w.T) ** 2), argnums=(0, 1))(x, meant)
    np.testing.assert_allclose(dx.numpy(), wanted.numpy(), rtol=1e-5)
    slopes = dw.numpy() * numbers.numpy().astype("float32")
    np.testing.assert_allclose(doffset.numpy(), dw.numpy().reshape(5, 2, 4).sum(2), rtol=1e-4)
    np.testing.assert_allclose(dscale.numpy(), slopes.reshape(5, 2, 4).sum(2), rtol=1e-4)


@pytest.mark.parametrize(
    ("x", "scale", "dtype"),
    [
        ("float16", "float16", "float16"),
        ("bfloat16", "float32", "float32"),
        ("float64", "float32", "float64"),
    ],
)
def test_weights_alone_give_the_dtype_of_both_floats(x, scale, dtype):
    q = tp.ones((4, 2), dtype="int8")
    result = tp.quantized_matmul(tp.ones((1, 4), dtype=x), q, None, tp.ones((2,), dtype=scale))
    assert (result.dtype.name, result.tolist()) == (dtype, [[4.0, 4.0]])


@pytest.mark.parametrize("dtype", ["int4", "int2"])
def test_packed_numbers_are_saved_as_they_are(dtype, tmp_path):
    q = tp.quantize(np.arange(-16.0, 16).reshape(4, 8), 4.0, dtype=dtype)
    each = 8 // q.dtype.bits
    packed = tp.bitcast(tp.reshape(q, (4, -1, each)), "uint8")
    tp.save({"w": packed}, tmp_path / "w.safetensors")
    loaded = tp.load(tmp_path / "w.safetensors")["w"]
    assert (loaded.dtype.name, loaded.shape) == ("uint8", (4, 8 // each))
    again = tp.reshape(tp.bitcast(loaded, dtype), (4, 8))
    assert tp.astype(again, "int8").tolist() == tp.astype(q, "int8").tolist()


@pytest.mark.parametrize("packed", ["int4", "uint4", "int2", "uint2"])
def test_packed_weights_are_unpacked_in_the_group_that_scales_them(packed):
    """Of many rows; in float64, for which no backend has a kernel."""
    rng = np.random.default_rng(0)
    each = 8 // tp.asarray(0, dtype=packed).dtype.bits
    x, scale = (tp.asarray(rng.standard_normal(s), dtype="float64") for s in ((64, 256), (128, 8)))
    b = tp.asarray(rng.integers(0, 256, (128, 256 // each)), dtype="uint8")

    @tp.compile
    def multiply(x, b, scale):
        return tp.quantized_matmul(x, b, None, scale, transpose_b=True, b_packed=packed)

    (fused,) = multiply.program(x, b, scale).fusion.groups
    assert {"RightShift", "Cast", "Multiply"} <= set(fused.group.name.split("+"))
