"""Conversions: text, 8 bits and less, on the host as on the device."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorplug as tp
from tensorplug_onnx import InputError, NodeError, ValueNeededError
from tensorplug_onnx.operators.casting import cast
from tensorplug_onnx.values import as_host, to_numpy_dtype

from .one_operator import TEXT, WAYS, assert_same, model_of, outputs_of

NAN, INF = np.nan, np.inf


def number_of(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(object) if dtype == TEXT else np.dtype(dtype))


def text(*words):
    return np.array(words, TEXT)


# Input, dtype, output.
TEXTS = {
    "decimals": (text("3.14", "1e-5", "1E8", "-0"), np.float32, [3.14, 1e-5, 1e8, -0.0]),
    "not finite": (text("+INF", "inf", "-Inf", "NaN"), np.float64, [INF, INF, -INF, NAN]),
    "half precision": (text("0.1"), ml_dtypes.bfloat16, [0.10009765625]),
    "64 bits": (text("9223372036854775807", "-1"), np.int64, [2**63 - 1, -1]),
    "64 bits without a sign": (text("18446744073709551615"), np.uint64, [2**64 - 1]),
    "integers of decimals": (text("100.5", "1e3", "-2.5"), np.int32, [100, 1000, -2]),
    "truths": (text("True", "0", "false", "2.5"), np.bool, [True, False, False, True]),
    "4 bits": (text("-8", "7"), ml_dtypes.int4, [-8, 7]),
}
PRINTED = {
    "the shortest": (np.array([0.1, 314.15926, 1], np.float32), ["0.1", "314.15927", "1.0"]),
    "without exponents": (np.array([1e-7, 2.0**70]), ["0.0000001", "1180591620717411300000.0"]),
    "not finite": (np.array([NAN, INF, -INF], np.float16), ["NaN", "INF", "-INF"]),
    "64 bits": (np.array([-(2**63), 5], np.int64), ["-9223372036854775808", "5"]),
    "4 bits": (np.array([-8, 7], ml_dtypes.int4), ["-8", "7"]),
    "bfloat16": (np.array([0.5, 1.0078125], ml_dtypes.bfloat16), ["0.5", "1.0078125"]),
    "truths": (np.array([True, False]), ["True", "False"]),
}


@pytest.mark.parametrize("way", ["called", "constant"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_is_read(name, way):
    x, dtype, expected = TEXTS[name]
    (found,) = outputs_of(way, "Cast", [x], {"to": number_of(dtype)}, opset=25)
    assert_same(found, np.array(expected, dtype))


@pytest.mark.parametrize("way", ["called", "constant"])
@pytest.mark.parametrize("name", PRINTED)
def test_numbers_are_written(name, way):
    x, expected = PRINTED[name]
    (found,) = outputs_of(way, "Cast", [x], {"to": TensorProto.STRING}, opset=25)
    assert_same(found, text(*expected))


def test_what_is_written_can_be_read():
    x = np.random.default_rng(3).normal(size=500).astype(np.float32) ** 21
    assert_same(cast(cast(x, "string"), "float32"), x)


def test_text_that_is_no_number():
    with pytest.raises(NodeError, match=r"node \(Cast, .*'Hello'"):
        outputs_of("called", "Cast", [text("Hello")], {"to": TensorProto.FLOAT})


def test_text_of_inputs_is_not_compiled():
    x = np.ones(2, np.float32)
    model = model_of("Cast", [x], {"to": TensorProto.STRING})
    with pytest.raises(ValueNeededError, match="Cast"):
        model.compile()(x)


# The powers of float8_e8m0fnu that ONNX's table and its modes ask for, from -127 to 127.
LEAST, MOST = 2.0**-127, 2.0**127
POWERS = {
    # value: up, down, nearest; and nearest without saturation
    0.0: (LEAST, LEAST, LEAST, NAN),
    2.0**-149: (LEAST, LEAST, LEAST, NAN),
    2.0**-127: (LEAST, LEAST, LEAST, LEAST),
    2.0**-127 * 1.25: (2 * LEAST, LEAST, LEAST, LEAST),
    2.0**-127 * 1.5: (2 * LEAST, LEAST, 2 * LEAST, 2 * LEAST),
    1.0: (1, 1, 1, 1),
    1.25: (2, 1, 1, 1),
    1.5: (2, 1, 2, 2),
    2.9: (4, 2, 2, 2),
    1.25 * MOST: (MOST, MOST, MOST, MOST),
    1.5 * MOST: (MOST, MOST, MOST, NAN),
    INF: (MOST, MOST, MOST, NAN),
    NAN: (NAN, NAN, NAN, NAN),
}
MODES = [("up", 1), ("down", 1), ("nearest", 1), ("nearest", 0)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at", range(len(MODES)))
def test_powers_of_two(at, way):
    mode, saturate = MODES[at]
    attributes = {"to": TensorProto.FLOAT8E8M0, "round_mode": mode, "saturate": saturate}
    x = np.array(list(POWERS), np.float32)
    (found,) = outputs_of(way, "Cast", [x], attributes, opset=25)
    assert found.dtype == ml_dtypes.float8_e8m0fnu
    expected = [row[at] for row in POWERS.values()]
    np.testing.assert_array_equal(found.astype(np.float32), np.array(expected, np.float32))


NARROW = (
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn",
    "int4", "uint4", "int2", "uint2", "bfloat16", "float16", "int8", "bool",
)  # fmt: skip


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", NARROW)
def test_the_host_converts_as_the_device(dtype, saturate):
    """The device rounds once: the conformance suite says so."""
    rng = np.random.default_rng(7)
    x = np.concat([rng.normal(size=3000) * np.exp2(rng.uniform(-20, 18, 3000)), [0, -0.0, 1e30]])
    whole = rng.integers(-(2**40), 2**40, 500)
    for values in (x, x.astype(np.float32), x.astype(ml_dtypes.bfloat16), whole, whole > 0):
        on_host = cast(values, dtype, saturate=saturate)
        on_device = cast(tp.asarray(values), dtype, saturate=saturate)
        assert isinstance(on_host, np.ndarray)
        assert isinstance(on_device, tp.Tensor)
        assert_same(on_host, on_device.numpy())


@pytest.mark.parametrize("device", ["cpu", "minimal"])
@pytest.mark.parametrize(
    ("saturate", "expected"), [(1, [448, -448, NAN, 448, 0.5]), (0, [NAN, NAN, NAN, NAN, 0.5])]
)
def test_saturation(saturate, expected, device):
    x = np.array([INF, -INF, NAN, 480, 0.5], np.float32)
    attributes = {"to": TensorProto.FLOAT8E4M3FN, "saturate": saturate}
    with tp.use_backend(device):
        (found,) = outputs_of("called", "Cast", [x], attributes, opset=19)
    assert_same(found, np.array(expected, np.float32).astype(ml_dtypes.float8_e4m3fn))


def numbers_of_six_bits(exponent_bits, mantissa_bits):
    """Return the number of each code without a sign, by the formula of OCP's text."""
    bias = 2 ** (exponent_bits - 1) - 1
    found = []
    for code in range(32):
        exponent, mantissa = divmod(code, 2**mantissa_bits)
        fraction = mantissa / 2**mantissa_bits
        found.append(
            2.0 ** (exponent - bias) * (1 + fraction) if exponent else 2.0 ** (1 - bias) * fraction
        )
    return found


@pytest.mark.parametrize("way", ["called", "constant"])
@pytest.mark.parametrize(
    ("elem_type", "numbers"),
    [
        (TensorProto.FLOAT6E2M3, numbers_of_six_bits(2, 3)),
        (TensorProto.FLOAT6E3M2, numbers_of_six_bits(3, 2)),
    ],
    ids=["e2m3", "e3m2"],
)
def test_floats_of_six_bits(elem_type, numbers, way):
    x, expected = [], []
    for code, (low, high) in enumerate(itertools.pairwise(numbers)):
        middle = (low + high) / 2
        even = high if code % 2 else low
        x += [low, middle, np.nextafter(middle, 0), np.nextafter(middle, 9e9)]
        expected += [low, even, low, high]
    x += [1.5 * numbers[-1], 1e30, np.inf]
    expected += [numbers[-1]] * 3
    given = np.array([*x, *(-one for one in x)])
    right = np.array([*expected, *(-one for one in expected)], np.float32)
    (found,) = outputs_of(way, "Cast", [given], {"to": elem_type})
    assert isinstance(found, np.ndarray)
    assert str(found.dtype) == {27: "float6_e2m3fn", 28: "float6_e3m2fn"}[elem_type]
    np.testing.assert_array_equal(found.astype(np.float32), right)
    (back,) = outputs_of(way, "Cast", [found], {"to": TensorProto.FLOAT})
    assert_same(back, right)
    scale = np.array(0.5, np.float32)
    zero = np.zeros((), found.dtype)
    (quantized,) = outputs_of(way, "QuantizeLinear", [right * scale, scale, zero])
    assert quantized.dtype == found.dtype
    np.testing.assert_array_equal(quantized.astype(np.float32), right)
    (restored,) = outputs_of(way, "DequantizeLinear", [quantized, scale])
    assert_same(restored, right * scale)


BITS = [
    (np.array([1.0, -2.0], np.float32), np.uint32, [0x3F800000, 0xC0000000]),
    (np.array([-1, 7], ml_dtypes.int4), ml_dtypes.uint4, [15, 7]),
    (np.array([True, False]), np.int8, [1, 0]),
    (np.array([1, 0], np.int8), np.bool, [True, False]),
    (np.array([True, False]), ml_dtypes.float8_e5m2, [2.0**-16, 0]),
    (np.array([0x7F], np.uint8), ml_dtypes.float8_e8m0fnu, [1.0]),
    (np.array([1.0, -0.0], ml_dtypes.bfloat16), np.uint16, [0x3F80, 0x8000]),
    (np.array([15, 7], ml_dtypes.uint4), ml_dtypes.float4_e2m1fn, [-6.0, 6.0]),
    (np.array([3, 1], ml_dtypes.uint2), ml_dtypes.int2, [-1, 1]),
]


@pytest.mark.parametrize("way", [*WAYS, "minimal"])
@pytest.mark.parametrize("at", range(len(BITS)))
def test_bits(at, way):
    x, dtype, expected = BITS[at]
    asked = "BitCast", [x], {"to": number_of(dtype)}
    if way == "minimal":  # a device that has few of the dtypes
        with tp.use_backend("minimal"):
            (found,) = outputs_of("called", *asked, opset=26)
    else:
        (found,) = outputs_of(way, *asked, opset=26)
    assert_same(found, np.array(expected, dtype))


@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.INT64])
def test_bits_of_another_width(to):
    with pytest.raises(NodeError, match="another width than float32"):
        outputs_of("called", "BitCast", [np.ones(2, np.float32)], {"to": to}, opset=26)


def test_a_device_without_the_dtype_of_a_parameter_or_an_input():
    half = np.array([1, 2, 0.5], np.float16)
    model = model_of("Mul", [half, half], opset=14, constant=(1,)).to("minimal")
    assert_same(as_host(model(half)["y0"]), half * half)
    with pytest.raises(InputError, match=r"'x0' is float16, which 'minimal' lacks: a compiled"):
        model.compile()(half)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_device_without_half_precision_computes_with_float32(dtype):
    x = np.linspace(-3, 3, 50, dtype=np.float32).astype(to_numpy_dtype(dtype))
    with tp.use_backend("minimal"):
        (found,) = outputs_of("called", "Softmax", [x.reshape(5, 10)], opset=13)
    wide = np.exp(x.astype(np.float64).reshape(5, 10))
    expected = wide / wide.sum(1, keepdims=True)
    assert_same(as_host(found), expected.astype(np.float32).astype(to_numpy_dtype(dtype)))


@pytest.mark.parametrize("device", ["cpu", "minimal"])
def test_outputs_of_another_type_stay_wide(device):
    """ONNX: the mean and the inverse deviation have the type of the computation."""
    x = np.array([[1, 2, 3], [1000, 1001.5, 1003]], np.float16)
    with tp.use_backend(device):
        found = outputs_of("called", "LayerNormalization", [x, x[0]], opset=17, outputs=3)
    assert [str(one.dtype) for one in found] == ["float16", "float32", "float32"]
    mean = x.astype(np.float64).mean(1, keepdims=True)
    np.testing.assert_allclose(found[1], mean, rtol=1e-6)
