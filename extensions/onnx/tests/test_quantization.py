"""Quantized numbers: per tensor, axis and block, all dtypes, all versions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import tensorplug as tp
from tensorplug_onnx import NodeError

from .one_operator import WAYS, assert_same, outputs_of

X = np.array([[-3.0, -0.5, 0.5, 1.5, 99.0], [0.0, 2.5, -99.0, 7.0, 1.0]], np.float32)
SCALE = np.array(0.5, np.float32)
ROWS = np.array([0.5, 2.0], np.float32)
COLUMNS = np.array([0.5, 1, 0.25, 2, 4], np.float32)
BLOCKS = np.array([[0.5, 1, 2], [4, 0.25, 1]], np.float32)  # of 2, 2 and 1 columns
SPREAD = np.repeat(BLOCKS, 2, axis=1)[:, :5]
F8 = ml_dtypes.float8_e4m3fn


def quantized(scale, zero, dtype, low, high):
    return np.clip(np.rint(X / np.float64(scale)) + zero, low, high).astype(dtype)


# What is asked, by name: operator, inputs, attributes, opset, expected output.
CASES = {
    "unsigned by default": (
        "QuantizeLinear", [X, SCALE], {}, 10, quantized(SCALE, 0, np.uint8, 0, 255)),
    "a zero point": (
        "QuantizeLinear", [X, SCALE, np.array(5, np.int8)], {}, 10,
        quantized(SCALE, 5, np.int8, -128, 127)),
    "columns by default": (
        "QuantizeLinear", [X, COLUMNS, np.arange(5, dtype=np.int8)], {}, 13,
        quantized(COLUMNS, np.arange(5), np.int8, -128, 127)),
    "rows": (
        "QuantizeLinear", [X, ROWS, np.array([1, 2], np.uint8)], {"axis": -2}, 13,
        quantized(ROWS[:, None], [[1], [2]], np.uint8, 0, 255)),
    "16 bits": (
        "QuantizeLinear", [X, np.array(1 / 1024, np.float32)], {"output_dtype": TensorProto.INT16},
        21, quantized(1 / 1024, 0, np.int16, -(2**15), 2**15 - 1)),
    "blocks, the last one is shorter": (
        "QuantizeLinear", [X, BLOCKS], {"block_size": 2, "output_dtype": TensorProto.INT8}, 21,
        quantized(SPREAD, 0, np.int8, -128, 127)),
    "4 bits": (
        "QuantizeLinear", [X, SCALE], {"output_dtype": TensorProto.INT4}, 21,
        quantized(SCALE, 0, ml_dtypes.int4, -8, 7)),
    "whole numbers": (
        "QuantizeLinear", [X.astype(np.int32), SCALE], {}, 13,
        np.clip(X.astype(np.int32) * 2, 0, 255).astype(np.uint8)),
    "8-bit floats saturate": (
        "QuantizeLinear", [X * 100, SCALE, np.array(0, F8)], {}, 19,
        np.clip(X * 200, -448, 448).astype(F8)),
    "8-bit floats, or not": (
        "QuantizeLinear", [X * 100, SCALE, np.array(0, F8)], {"saturate": 0}, 19,
        (X * 200).astype(F8)),
    "divided in float32": (
        "QuantizeLinear", [np.float16([2049 / 2]), np.float16([0.333])],
        {"precision": TensorProto.FLOAT, "output_dtype": TensorProto.INT16}, 23,
        np.rint(np.float16([2049 / 2]).astype(np.float64) / np.float16(0.333)).astype(np.int16)),
    "back": (
        "DequantizeLinear", [np.int8([[-8, 7]]), SCALE, np.array(2, np.int8)], {}, 10,
        np.float32([[-5, 2.5]])),
    "back, rows": (
        "DequantizeLinear", [np.uint8([[8], [7]]), ROWS, np.uint8([1, 2])], {"axis": 0}, 13,
        np.float32([[3.5], [10]])),
    "back, blocks": (
        "DequantizeLinear", [np.int16(X), BLOCKS], {"block_size": 2}, 21, np.trunc(X) * SPREAD),
    "back, wide": (
        "DequantizeLinear", [np.int32([2**20, -3]), SCALE], {}, 10, np.float32([2**19, -1.5])),
    "back, in another dtype": (
        "DequantizeLinear", [np.int8([3]), SCALE], {"output_dtype": TensorProto.FLOAT16}, 23,
        np.float16([1.5])),
    "zero points of rows": (
        "MatMulInteger",
        [np.uint8([[1, 2], [3, 4]]), np.int8([[5, -6], [7, 8]]), np.uint8([1, 2])], {}, 10,
        np.int32([[0, 1], [1, 2]]) @ np.int32([[5, -6], [7, 8]])),
    "zero points of columns": (
        "MatMulInteger",
        [np.uint8([[1, 2], [3, 4]]), np.int8([[5, -6], [7, 8]]), None, np.int8([1, -2])], {}, 10,
        np.int32([[1, 2], [3, 4]]) @ np.int32([[4, -4], [6, 10]])),
    "vectors": (
        "MatMulInteger", [np.int8([100, 100]), np.int8([100, 50]), np.array(1, np.int8)], {}, 10,
        np.int32(99 * 150)),
    "scales of rows and columns": (
        "QLinearMatMul",
        [np.int8([[10, 20], [30, 40]]), np.float32([0.5, 0.25]), np.int8([0, 10]),
         np.int8([[1, 2], [3, 4]]), np.float32([2, 4]), np.int8([0, 1]),
         np.array(8, np.float32), np.array(-1, np.int8)], {}, 10,
        # [[10, 20], [20, 30]] @ [[1, 1], [3, 3]] = [[70, 70], [110, 110]], in units of 8:
        np.rint([[70 / 8, 140 / 8], [55 / 8, 110 / 8]]).astype(np.int8) - np.int8(1)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, way):
    operator, inputs, attributes, opset, expected = CASES[name]
    (found,) = outputs_of(way, operator, inputs, attributes, opset=opset)
    assert_same(found, expected)


# What must not run, by name: operator, inputs, attributes, what the message says.
WRONG = {
    "scales of an axis": ("QuantizeLinear", [X, ROWS], {}, "2 scales along axis 1"),
    "scales of blocks": (
        "QuantizeLinear", [X, BLOCKS], {"block_size": 3}, "3 scales along axis 1"),
    "the rank of blocks": (
        "DequantizeLinear", [np.int8(X[:, :4]), ROWS], {"block_size": 2}, "rank"),
    "blocks without a size": ("QuantizeLinear", [X, BLOCKS], {}, "block_size"),
    "an axis": ("QuantizeLinear", [X, ROWS], {"axis": 2}, "axis 2"),
    "floats of 16 bits": (
        "QuantizeLinear", [X, SCALE], {"output_dtype": TensorProto.FLOAT16}, "float16"),
    "another zero point": (
        "DequantizeLinear", [np.int8(X[:, :4]), SCALE, np.array(0, np.uint8)], {}, "uint8"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_node(name):
    operator, inputs, attributes, message = WRONG[name]
    with pytest.raises(NodeError, match=rf"{operator}.*{message}"):
        outputs_of("called", operator, inputs, attributes)


# Dtypes that the example backend of primitives lacks, a scale, and what 1 becomes and comes back.
LACKING = [
    (ml_dtypes.int4, np.float32(0.25), [4, 7, -8], [1, 1.75, -2]),
    (ml_dtypes.uint2, np.float16(0.5), [2, 3, 0], [1, 1.5, 0]),
    (ml_dtypes.float8_e4m3fn, np.float16(0.125), [8, 448, -448], [1, 56, -56]),
    (ml_dtypes.float4_e2m1fn, np.float32(0.5), [2, 6, -6], [1, 3, -3]),
]


@pytest.mark.parametrize("at", range(len(LACKING)))
def test_dtypes_that_a_device_lacks(at):
    dtype, scale, codes, back = LACKING[at]
    scale, codes = np.asarray(scale), np.array(codes, dtype)
    x = np.array([1, 100, -100], scale.dtype)
    with tp.use_backend("minimal"):
        (found,) = outputs_of(
            "called", "QuantizeLinear", [x, scale, np.zeros((), dtype)], opset=25
        )
        (again,) = outputs_of("called", "DequantizeLinear", [codes, scale], opset=25)
    assert_same(found, codes)
    assert_same(again, np.array(back, scale.dtype))
