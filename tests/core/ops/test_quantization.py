"""Quantization: values by hand, straight-through slopes, and ONNX's semantics."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    NotConnectedError,
    OutOfRangeError,
    ShapeError,
)

RNG = np.random.default_rng(34)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def same(actual: tp.Tensor, expected: object, dtype: str) -> None:
    wanted = np.array(expected, dtype)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    np.testing.assert_array_equal(actual.numpy(), wanted)


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


SHAPES = [  # shape of x, of the scale, axis
    ((4, 6), (), None),
    ((4, 6), (6,), None),
    ((4, 6), (4,), 0),
    ((2, 3, 4), (3,), -2),
    ((4, 6), (4, 3), None),
    ((6, 4), (2, 4), None),
    ((6, 8), (3, 2), None),
    ((6, 8), (4,), 1),
]


@pytest.mark.parametrize(("shape", "of", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_scales_and_zero_points_belong_to_blocks(shape, of, axis, dtype):
    x = RNG.normal(size=shape).astype(np.float32)
    scale = RNG.uniform(0.01, 0.03, of).astype(np.float32)
    zero_point = RNG.integers(0, 100, of).astype(dtype)
    blocks = np.indices(shape)
    along = scale.reshape(
        of if axis is None else (-1, *(1,) * (len(shape) - 1 - axis % len(shape)))
    )
    places = [np.zeros(shape, int)] * along.ndim
    for at in range(1, along.ndim + 1):
        places[-at] = blocks[-at] * along.shape[-at] // shape[-at]
    each = along[tuple(places)] if along.ndim else np.broadcast_to(along, shape)
    offset = zero_point.reshape(along.shape)[tuple(places)] if along.ndim else zero_point
    limits = np.iinfo(dtype)
    wanted = np.clip(np.rint(x / each) + offset, limits.min, limits.max).astype(dtype)
    quantized = tp.quantize(x, scale, zero_point, axis=axis)
    same(quantized, wanted, dtype)
    floats = (wanted.astype(np.int64) - offset) * each.astype(np.float64)
    for back in (
        tp.dequantize(quantized, scale, zero_point, axis=axis),
        tp.fake_quantize(x, scale, zero_point, axis=axis),
    ):
        assert (back.dtype, back.shape) == (tp.float32, shape)
        np.testing.assert_allclose(back.numpy(), floats, rtol=1e-7, atol=0)


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


def test_products_are_exact_where_float32_is_not():
    a, b = np.full((2, 5000), -128, np.int8), np.full((5000, 3), 255, np.uint8)
    b[0] = 254  # the sum has more digits than float32
    same(tp.quantized_matmul(a, b), a.astype(np.int64) @ b.astype(np.int64), "int32")


def test_products_of_blocks():
    a, b = RNG.integers(-128, 128, (3, 12), np.int8), RNG.integers(0, 256, (12, 5), np.uint8)
    a_scale = RNG.uniform(0.01, 0.02, (3, 4)).astype(np.float32)
    b_scale = RNG.uniform(0.01, 0.02, (4, 5)).astype(np.float32)
    offset = np.uint8(131)
    found = tp.quantized_matmul(a, b, a_scale, b_scale, b_zero_point=offset)
    left = a * np.repeat(a_scale.astype(np.float64), 3, axis=1)
    right = (b.astype(float) - 131) * np.repeat(b_scale.astype(np.float64), 3, axis=0)
    assert (found.dtype, found.shape) == (tp.float32, (3, 5))
    np.testing.assert_allclose(found.numpy(), left @ right, rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize(
    ("left", "right"),
    [("int4", "int4"), ("int8", "uint4"), ("uint8", "int2"), ("float8_e4m3fn", "float8_e5m2")],
)
def test_products_of_storage_dtypes(left, right):
    a, b = (
        tp.astype(RNG.integers(0, 4, shape).astype(np.int8) - 2 * (dtype[0] != "u"), dtype)
        for shape, dtype in (((3, 8), left), ((8, 2), right))
    )
    wanted = tp.astype(a, "int32").numpy() @ tp.astype(b, "int32").numpy()
    same(tp.quantized_matmul(a, b), wanted, "float32" if "float" in left else "int32")
    same(tp.quantized_matmul(a, b, 0.5, [0.25, 2.0]), wanted * [0.125, 1], "float32")


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


def test_gradients_of_a_product_of_floats_are_those_of_its_fakes():
    a, b = RNG.normal(size=(2, 3, 8)), RNG.normal(size=(8, 4))
    a_scale, b_scale = RNG.uniform(0.01, 0.02, (3, 2)), RNG.uniform(0.01, 0.02, (4,))

    def product(a, b, a_scale, b_scale):
        return tp.quantized_matmul(a, b, a_scale, b_scale, b_zero_point=np.uint8(90))

    def fakes(a, b, a_scale, b_scale):
        right = tp.fake_quantize(b, b_scale, np.uint8(90))
        return tp.matmul(tp.fake_quantize(a, a_scale), right)

    operands = [tp.asarray(x) for x in (a, b, a_scale, b_scale)]
    weights = tp.asarray(RNG.normal(size=(2, 3, 4)))
    found, wanted = (
        tp.grad(lambda *of, f=f: tp.sum(weights * f(*of)), argnums=(0, 1, 2, 3))(*operands)
        for f in (product, fakes)
    )
    np.testing.assert_allclose(product(*operands).numpy(), fakes(*operands).numpy(), rtol=1e-12)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)
    assert not np.all(found[0].numpy())  # some were clipped


def test_gradients_of_the_scales_of_integers_are_slopes():
    a, b = RNG.integers(-128, 128, (3, 8), np.int8), RNG.integers(0, 256, (8, 2), np.uint8)
    scales = RNG.uniform(0.5, 1.5, (3, 4)), RNG.uniform(0.5, 1.5, (4, 1))

    def total(*scales):
        made = tp.quantized_matmul(a, b, *scales, a_zero_point=np.int8(3))
        return tp.sum(made * tp.asarray([[1.0, -2.0]], dtype=tp.float64))

    found = tp.grad(total, argnums=(0, 1))(*map(tp.asarray, scales))
    for which, scale in enumerate(scales):
        slopes = np.zeros(scale.shape)
        for at in np.ndindex(scale.shape):
            moved = [np.array(one) for one in scales]
            moved[which][at] += 1  # it is linear in each scale
            slopes[at] = (
                total(*map(tp.asarray, moved)).item() - total(*map(tp.asarray, scales)).item()
            )
        assert found[which].shape == scale.shape
        np.testing.assert_allclose(found[which].numpy(), slopes, rtol=1e-9)


def test_quantize_itself_has_no_gradient():
    with pytest.raises(NotConnectedError):
        tp.grad(lambda x: tp.sum(tp.dequantize(tp.quantize(x, 0.5), 0.5)))(tp.ones((2,)))


def test_compiled_calls_give_the_same():
    x, w = RNG.normal(size=(3, 8)).astype(np.float32), RNG.normal(size=(8, 4)).astype(np.float32)

    def loss(x, w, scale):
        hidden = tp.quantized_matmul(x, w, scale, scale)
        return tp.sum(tp.fake_quantize(hidden, 0.25) ** 2)

    operands = [tp.asarray(x), tp.asarray(w), tp.asarray(0.03)]
    eager, compiled = (
        tp.value_and_grad(f, argnums=(0, 1, 2))(*operands) for f in (loss, tp.compile(loss))
    )
    for one, other in zip((eager[0], *eager[1]), (compiled[0], *compiled[1]), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


# ONNX ------------------------------------------------------------------------------------


def run_onnx(op: str, inputs: list[np.ndarray], **attributes: object) -> np.ndarray:
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    names = [f"x{at}" for at in range(len(inputs))]
    node = onnx.helper.make_node(op, names, ["y"], **attributes)
    typed = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
        )
        for name, x in zip(names, inputs, strict=True)
    ]
    out = onnx.helper.make_empty_tensor_value_info("y")
    graph = onnx.helper.make_graph([node], "g", typed, [out])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    return reference.ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))[0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize(
    ("of", "attributes", "axis"),
    [
        ((), {}, None),
        ((4,), {"axis": 0}, 0),
        ((6,), {"axis": 1}, 1),
        ((4, 3), {"axis": 1, "block_size": 2}, None),
    ],
)
def test_quantize_linear_of_onnx(dtype, of, attributes, axis):
    x = RNG.normal(size=(4, 6)).astype(np.float32) * 3
    scale = RNG.uniform(0.01, 0.03, of).astype(np.float32)
    offset = RNG.integers(0, 100, of).astype(dtype)
    wanted = run_onnx("QuantizeLinear", [x, scale, offset], **attributes)
    quantized = tp.quantize(x, scale, offset, axis=axis)
    same(quantized, wanted, dtype)
    back = run_onnx("DequantizeLinear", [wanted, scale, offset], **attributes)
    same(tp.dequantize(quantized, scale, offset, axis=axis), back, "float32")


@pytest.mark.parametrize(("left", "right"), [("uint8", "int8"), ("uint8", "uint8")])
def test_mat_mul_integer_of_onnx(left, right):
    a, b = RNG.integers(0, 128, (4, 3)).astype(left), RNG.integers(0, 128, (3, 2)).astype(right)
    offsets = np.array(12, left), np.array(5, right)
    wanted = run_onnx("MatMulInteger", [a, b, *offsets])
    found = tp.quantized_matmul(a, b, a_zero_point=offsets[0], b_zero_point=offsets[1])
    same(found, wanted, "int32")


def test_q_linear_mat_mul_of_onnx():
    a, b = RNG.integers(0, 256, (4, 3), np.uint8), RNG.integers(0, 256, (3, 2), np.uint8)
    scales = [np.float32(scale) for scale in (0.0066, 0.00705, 0.0107)]
    offsets = [np.uint8(offset) for offset in (113, 114, 118)]
    inputs = [a, scales[0], offsets[0], b, scales[1], offsets[1], scales[2], offsets[2]]
    wanted = run_onnx("QLinearMatMul", [np.asarray(x) for x in inputs])
    product = tp.quantized_matmul(
        a, b, scales[0], scales[1], a_zero_point=offsets[0], b_zero_point=offsets[1]
    )
    same(tp.quantize(product, scales[2], offsets[2]), wanted, "uint8")


@pytest.mark.parametrize("dtype", ["int4", "uint2"])
def test_numbers_are_faked_where_a_backend_lacks_their_dtype(dtype):
    x = [0.3, -9.0, 1.25, 99.0, float("nan")]
    with tp.use_backend("minimal"):
        found = tp.fake_quantize(x, 0.5, dtype=dtype)
    about = tp.iinfo(dtype)
    expected = [min(max(round(n / 0.5), about.min), about.max) * 0.5 for n in x[:-1]]
    assert found.tolist() == [*expected, 0.0]
