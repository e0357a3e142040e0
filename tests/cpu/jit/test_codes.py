"""Products of floats by small integers that become floats while they are packed."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import KernelRefusedError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.codegen import functions
from tensorplug_cpu.jit.families.codes import product_by_codes
from tensorplug_cpu.jit.loops import products

pytest.importorskip("llvmlite")

# a; columns; dtype; whether b is transposed; shapes of scales, zero points and offsets
PRODUCTS = [
    ((16, 64), 32, "uint4", True, (32, 2), None, None),
    ((3, 7, 96), 33, "int4", True, (33, 3), None, None),  # columns are left over
    ((17, 64), 5, "int2", True, (5, 1), (1, 2), None),
    ((40, 1536), 48, "uint2", True, (), None, None),  # parts of the terms
    ((9, 800), 70, "int8", True, (1, 25), (70, 25), None),
    ((64, 384), 50, "uint8", True, (25, 1), (50, 1), (50, 4)),  # two rows share a scale
    ((12, 1000), 16, "int8", True, None, None, (1, 1)),  # 1000 terms with one number, in 5 steps
    ((30, 96), 40, "int8", False, (3, 40), (40,), None),
    ((30, 768), 41, "uint8", False, (41,), (1, 1), (24, 41)),
]


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "always")


def packed(q, bits):
    """Return integers as bytes, the first ones in the lowest bits."""
    each = 8 // bits
    parts = (q & ((1 << bits) - 1)).reshape(*q.shape[:-1], -1, each)
    return (parts << (bits * np.arange(each))).sum(axis=-1).astype(np.uint8)


def spread(numbers, shape):
    numbers = numbers.reshape((1,) * (2 - numbers.ndim) + numbers.shape)
    for axis, length in enumerate(shape):
        numbers = numbers.repeat(length // numbers.shape[axis], axis)
    return numbers


def operands(a, columns, name, transposed, *shapes):
    """Return a, b, numbers, and the product: all numbers are exact in float32."""
    rng = np.random.default_rng(columns)
    code = dt.of(name)
    x = rng.integers(-8, 9, a).astype(np.float32)
    matrix = (columns, a[-1]) if transposed else (a[-1], columns)
    low, high = int(code.min), int(code.max)
    q = rng.integers(low, high + 1, matrix)
    of_scale, of_zero, of_offset = shapes
    numbers = [
        None if of_scale is None else (2.0 ** rng.integers(-3, 3, of_scale)).astype(np.float32),
        None if of_zero is None else rng.integers(low, high + 1, of_zero),
        None if of_offset is None else rng.integers(-4, 5, of_offset).astype(np.float32),
    ]
    scale, zero, offset = (
        spread(np.asarray(default if each is None else each), matrix)
        for each, default in zip(numbers, (1, 0, 0), strict=True)
    )
    weights = (q - zero) * scale.astype(np.float64) + offset
    wanted = np.einsum("...k,nk->...n" if transposed else "...k,kn->...n", x, weights)
    b = packed(q, code.bits) if code.bits < 8 else q.astype(name)
    if numbers[1] is not None:
        numbers[1] = numbers[1].astype(code.numpy)
    return x, b, numbers, wanted


def type_of(x):
    return None if x is None else TensorType(dt.of(x.dtype), x.shape)


def prepared(x, b, numbers, name, *, transposed, out):
    code = dt.of(name)
    return product_by_codes(
        *(type_of(x), type_of(b), tuple(map(type_of, numbers)), out),
        transpose_b=transposed,
        b_packed=code if code.bits < 8 else None,
    )


@pytest.mark.parametrize("product", PRODUCTS)
def test_products(product):
    x, b, numbers, wanted = operands(*product)
    _, _, name, transposed, *_ = product
    out = TensorType(dt.float32, wanted.shape)
    run = prepared(x, b, numbers, name, transposed=transposed, out=out)
    found = run(x, b, *numbers)
    assert (found.shape, found.dtype) == (wanted.shape, np.float32)
    np.testing.assert_array_equal(found, wanted)
    shifted = np.frombuffer(b"\0" + b.tobytes(), b.dtype, offset=1).reshape(b.shape)
    for layout in (np.asfortranarray(b), np.repeat(b, 2, axis=0)[::2], shifted):
        np.testing.assert_array_equal(run(x, layout, *numbers), wanted)


def multiply_before_a_hole():
    """Multiply by codes behind which no memory can be read; the last panel is not full."""
    x, b, numbers, wanted = operands(*PRODUCTS[1])
    end = -(-b.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, end + mmap.PAGESIZE), np.uint8)
    hole = ctypes.c_void_p(memory.ctypes.data + end)
    assert ctypes.CDLL(None).mprotect(hole, mmap.PAGESIZE, 0) == 0
    last = memory[end - b.nbytes : end].view(b.dtype).reshape(b.shape)
    last[...] = b
    run = prepared(
        x, last, numbers, "int4", transposed=True, out=TensorType(dt.float32, wanted.shape)
    )
    np.testing.assert_array_equal(run(x, last, *numbers), wanted)


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected as by POSIX")
def test_nothing_behind_the_last_column_is_read():
    command = f"from tests.cpu.jit.test_codes import *; {multiply_before_a_hole.__name__}()"
    environment = os.environ | {"TENSORPLUG_CPU_JIT": "always"}
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", command], cwd=root, env=environment, check=True)


@pytest.mark.parametrize(("width", "registers"), [(16, 16), (32, 16), (64, 32)])
def test_vectors_of_every_width(monkeypatch, width, registers):
    monkeypatch.setattr(functions, "vector_bytes", lambda: width)
    monkeypatch.setattr(products, "registers", lambda: registers)
    for product in PRODUCTS:
        test_products(product)


def test_floats_of_16_bits_are_rounded_once():
    x, b, numbers, wanted = operands(*PRODUCTS[0])
    out = TensorType(dt.float16, wanted.shape)
    halves = [None if each is None else each.astype(np.float16) for each in numbers]
    run = prepared(x.astype(np.float16), b, halves, "uint4", transposed=True, out=out)
    found = run(x.astype(np.float16), b, *halves)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, wanted.astype(np.float16))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"x": np.ones((16, 64), np.float64)}, "float32"),
        ({"x": np.ones((16, 64), np.int8)}, "float32"),
        ({"b": np.ones((2, 32, 32), np.uint8)}, "one matrix"),
        ({"transposed": False, "b": np.ones((64, 16), np.uint8)}, "several columns"),
        ({"zero": np.zeros((32, 4), np.uint8)}, "different blocks"),
        ({"x": np.ones((16, 68), np.float32), "b": np.ones((32, 34), np.uint8)}, "whole words"),
    ],
)
def test_what_is_refused(change, text):
    x, b, (scale, *_), _ = operands(*PRODUCTS[0])
    x, b = change.get("x", x), change.get("b", b)
    scale = np.ones((32, 1), np.float32) if x.shape[-1] == 68 else scale
    numbers = scale, change.get("zero"), None
    out = TensorType(dt.float32, (*x.shape[:-1], 32))
    with pytest.raises(KernelRefusedError, match=text):
        prepared(x, b, numbers, "uint4", transposed=change.get("transposed", True), out=out)


def test_many_rows_are_no_copy_of_the_matrix_in_floats():
    rng = np.random.default_rng(0)
    with tp.use_backend("cpu"):
        x = tp.asarray(rng.standard_normal((64, 576)), dtype="float32")
        b = tp.asarray(rng.integers(0, 256, (960, 288)), dtype="uint8")
        scale = tp.asarray(rng.random((960, 18)), dtype="float32")
        with tp.profile() as profile:
            tp.quantized_matmul(x, b, None, scale, transpose_b=True, b_packed="uint4")
    (record,) = profile.kernels
    assert record.how == "native"
    assert record.new_bytes == 64 * 960 * 4
