"""Products of few rows: values against float64, and what reads the larger matrix once."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops import native
from tensorplug_loops.forms.matrix_products import product
from tensorplug_loops.forms.quantization import quantized_mat_mul
from tensorplug_loops.forms.table import Operand
from tensorplug_loops.schedule import plan

from . import by_llvm

pytestmark = pytest.mark.usefixtures("compiled_quickly")
RNG = np.random.default_rng(4)


def wide(group):
    return by_llvm.compile_group(group, vector_bytes=64)


def whole(group):
    return by_llvm.compile_group(group, vector_bytes=32, masked=False)


COMPILERS = {"C": native.compile_group, "LLVM": by_llvm.compile_group, "LLVM, wide": wide}
each_compiler = pytest.mark.parametrize("compile_group", COMPILERS.values(), ids=COMPILERS)

SHAPES = [  # rows, columns, inner elements
    (1, 37, 64),
    (1, 300, 577),
    (2, 130, 96),
    (3, 16, 1100),
    (8, 41, 160),
    (8, 140, 4100),  # several chunks
    (3, 16, 3008),  # likewise, which are no whole turns
    (40, 5, 64),  # few columns
]


def drawn(shape, dtype):
    if dtype in dt.INTEGER:
        return RNG.integers(dtype.min, dtype.max + 1, shape).astype(dtype.numpy)
    return RNG.standard_normal(shape).astype(dtype.numpy)


def operand(number, array):
    return Operand(TensorType(dt.of(array.dtype), array.shape), number)


def assert_near(found, exact, size):
    """Compare sums whose products have these sizes when they are added up as they are."""
    assert np.all(np.abs(found - exact) <= 1e-6 * size + 1e-6)


@each_compiler
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int8])
def test_products(compile_group, shape, transposed, dtype):
    m, n, k = shape
    turn_a, turn_b = transposed
    a = drawn((k, m) if turn_a else (m, k), dtype)
    b = drawn((n, k) if turn_b else (k, n), dtype)
    out = TensorType(dt.int32 if dtype is dt.int8 else dt.float32, (m, n))
    form = product(
        operand(0, a),
        operand(1, b),
        out,
        lambda x: ex.cast(x, dt.int32) if dtype is dt.int8 else x,
        transpose_a=turn_a,
        transpose_b=turn_b,
    )
    (found,) = compile_group(form.group)(a, b)
    left, right = (x.astype(np.float64) for x in (a.T if turn_a else a, b.T if turn_b else b))
    assert found.shape == (m, n)
    if dtype is dt.int8:
        np.testing.assert_array_equal(found, left @ right)
    else:
        assert_near(found, left @ right, np.abs(left) @ np.abs(right))


def unpacked(held, dtype):
    """Return the numbers in bytes."""
    codes = np.stack([held >> at for at in range(0, 8, dtype.bits)], -1) % (1 << dtype.bits)
    codes = codes.astype(np.int64).reshape(*held.shape[:-1], -1)
    return np.where(codes > dtype.max, codes - (1 << dtype.bits), codes)


WEIGHTS = [  # rows, columns, inner elements, blocks; whether there are zero points, offsets
    (1, 37, 128, 4, False, False),
    (1, 200, 320, 10, True, False),
    (1, 130, 576, 18, False, True),
    (2, 70, 96, 1, False, True),
    (8, 33, 2048, 64, False, False),
    (4, 20, 2048, 32, False, True),
    (5, 40, 64, 2, True, True),
]


@pytest.mark.parametrize("compile_group", [*COMPILERS.values(), whole], ids=[*COMPILERS, "whole"])
@pytest.mark.parametrize("case", WEIGHTS)
@pytest.mark.parametrize("packed", [None, dt.int4, dt.uint4, dt.int2, dt.uint2])
@pytest.mark.parametrize("narrow", [dt.float32, dt.float16])
def test_weights_alone(compile_group, case, packed, narrow):
    m, n, k, blocks, centred, shifted = case
    x = drawn((m, k), dt.float32)
    b = drawn((n, k // (8 // packed.bits if packed else 1)), dt.uint8 if packed else dt.int8)
    scale = RNG.uniform(0.5, 2, (n, blocks)).astype(narrow.numpy)
    zero = drawn((n, 1), packed or dt.int8) if centred else None
    offset = RNG.uniform(-20, 20, (n, blocks)).astype(narrow.numpy) if shifted else None
    arrays = (x, b, None, scale, None, zero, offset)
    form = quantized_mat_mul(
        *(None if each is None else operand(number, each) for number, each in enumerate(arrays)),
        transpose_b=True,
        b_packed=packed,
        out=TensorType(dt.float32, (m, n)),
    )
    (found,) = compile_group(form.group)(*(arrays[number] for number in form.sources))
    numbers = unpacked(b, packed) if packed else b.astype(np.int64)
    numbers = numbers - (0 if zero is None else zero.astype(np.int64))
    right = numbers * np.repeat(scale.astype(np.float64), k // blocks, axis=1)
    if offset is not None:
        right = right + np.repeat(offset.astype(np.float64), k // blocks, axis=1)
    left = x.astype(np.float64)
    assert_near(found, left @ right.T, np.abs(left) @ np.abs(right).T)


@pytest.mark.parametrize("rows", range(1, 9))
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.float16])
def test_the_larger_matrix_is_read_where_it_lies(rows, turned, dtype):
    a = Operand(TensorType(dtype, (rows, 96)), 0)
    b = Operand(TensorType(dtype, (160, 96) if turned else (96, 160)), 1)
    form = product(a, b, TensorType(dtype, (rows, 160)), transpose_b=turned)
    program = plan(form.group, by_llvm.machine(32))
    assert (len(program.launches), program.temporaries) == (1, ())


@pytest.mark.parametrize("packed", [dt.int4, dt.uint2])
def test_the_interpreter_reads_packed_numbers(packed):
    x, b = drawn((2, 64), dt.float32), drawn((16, 8 * packed.bits), dt.uint8)
    form = quantized_mat_mul(
        operand(0, x),
        operand(1, b),
        *(None,) * 4,
        transpose_b=True,
        b_packed=packed,
        out=TensorType(dt.float32, (2, 16)),
    )
    arrays = [(x, b)[number] for number in form.sources]
    (found,) = interpreter(form.group)(*arrays)
    np.testing.assert_allclose(
        found, x.astype(np.float64) @ unpacked(b, packed).T, rtol=1e-5, atol=1e-4
    )
