"""bfloat16 in groups of the CPU backend: by LLVM and by NumPy, mixed with other dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract import expressions
from tensorplug.contract.groups import Group, GroupInput, GroupOutput, Reduction
from tensorplug.contract.spec import TensorType
from tensorplug_cpu import blocks
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.jit.codegen import settings
from tensorplug_cpu.jit.codegen.compiler import is_available
from tensorplug_cpu.jit.groups import kernels
from tensorplug_cpu.memory import pool as memory_pool

B = dt.bfloat16
SIZE = 1 << 15
COMPILERS = {
    "LLVM": pytest.param(
        kernels.compile_group,
        marks=pytest.mark.skipif(not is_available(), reason="llvmlite is not installed"),
    ),
    "NumPy": blocks.compile_group,
}
RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setenv(settings.JIT, "always")


def bits(x):
    """Return the bits of float32 rounded to bfloat16, halves to even, by integers."""
    whole = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    near = (whole + 0x7FFF + (whole >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, near).astype(np.uint16)


def values(stored):
    """Return the float32 numbers that have these bits as their upper halves."""
    return (stored.astype(np.uint32) << 16).view(np.float32)


def numbers(count=SIZE):
    with np.errstate(over="ignore"):
        scale = 10.0 ** RNG.integers(-44, 39, count)
        x = (RNG.standard_normal(count) * scale).astype(np.float32)
    x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38]
    return x


def compute(compile_group, roots, arrays, reductions=()):
    """Compute expressions of arrays; reductions are along the only axis."""
    (size,) = arrays[0].shape
    group = Group(
        "test",
        (size,),
        tuple(GroupInput(TensorType(dt.of(x.dtype), x.shape), (True,)) for x in arrays),
        tuple(Reduction(op, root, (True,)) for op, root in reductions),
        tuple(
            GroupOutput(
                root,
                TensorType(root.dtype, () if reductions else (size,)),
                (not reductions,),
            )
            for root in roots
        ),
    )
    run = compile_group(group)
    assert run is not None
    return run(*arrays)


@pytest.mark.parametrize("compile_group", COMPILERS.values(), ids=COMPILERS)
def test_load_compute_store(compile_group):
    stored, wide = bits(numbers()), np.abs(numbers())
    a = expressions.cast(expressions.parameter(0, B), dt.float32)
    b = expressions.parameter(1, dt.float32)
    roots = [expressions.cast(a * b, B), a + b, expressions.cast(b, B)]
    found = compute(compile_group, roots, [stored.view(B.numpy), wide])
    with np.errstate(all="ignore"):
        product, total = values(stored) * wide, values(stored) + wide
    assert [x.dtype for x in found] == [B.numpy, np.float32, B.numpy]
    for x, expected in ((found[0], product), (found[2], wide)):
        defined = ~np.isnan(expected)
        np.testing.assert_array_equal(x.view(np.uint16)[defined], bits(expected)[defined])
        assert np.isnan(values(x.view(np.uint16)[~defined])).all()
    np.testing.assert_array_equal(found[1], total)


@pytest.mark.parametrize("compile_group", COMPILERS.values(), ids=COMPILERS)
@pytest.mark.parametrize("source", [dt.float64, dt.int64, dt.uint64, dt.int32], ids=str)
def test_wide_numbers_are_rounded_once(compile_group, source):
    """By way of float32, a number just above the middle would become the even neighbour."""
    if source is dt.float64:
        middle = 1 + RNG.integers(0, 128, SIZE) / 128 + 2.0**-8
        x = middle * (1 + RNG.integers(-1, 2, SIZE) * 2.0**-40)
    else:
        top = source.bits - (source in dt.SIGNED) - 9
        middle = (RNG.integers(128, 256, SIZE).astype(object) * 2 + 1) << top
        near = (middle + RNG.integers(-1, 2, SIZE)).tolist()
        x = np.array(near, source.numpy)
    root = expressions.cast(expressions.parameter(0, source), B)
    (found,) = compute(compile_group, [root], [x])
    exact = np.array([int(number * 2**60) for number in x.tolist()], object)
    shown = values(found.view(np.uint16)).tolist()
    spacing = np.array([2 ** (number.bit_length() - 8) for number in exact], object)
    off = np.array([int(number * 2**60) for number in shown], object) - exact
    assert (2 * np.abs(off) <= spacing).all()
    ties = 2 * np.abs(off) == spacing
    assert ties.any()
    assert (found.view(np.uint16)[ties.astype(bool)] % 2 == 0).all()


@pytest.mark.parametrize("compile_group", COMPILERS.values(), ids=COMPILERS)
def test_choosing_moves_bits(compile_group):
    stored = [np.arange(SIZE, dtype=np.uint16), np.arange(SIZE, dtype=np.uint16)[::-1].copy()]
    condition = RNG.integers(0, 2, SIZE).astype(bool)
    root = expressions.where(
        expressions.parameter(0, dt.bool_),
        expressions.parameter(1, B),
        expressions.parameter(2, B),
    )
    (found,) = compute(compile_group, [root], [condition, *(x.view(B.numpy) for x in stored)])
    np.testing.assert_array_equal(found.view(np.uint16), np.where(condition, *stored))


@pytest.mark.parametrize("compile_group", COMPILERS.values(), ids=COMPILERS)
def test_sums_in_float32(compile_group):
    ones = np.ones(SIZE, np.float32)
    term = expressions.cast(expressions.parameter(0, B), dt.float32)
    root = expressions.cast(expressions.parameter(1, dt.float32), B)
    (found,) = compute(
        compile_group, [root], [bits(ones).view(B.numpy)], reductions=[("sum", term)]
    )
    assert (found.shape, found.dtype, float(found)) == ((), B.numpy, SIZE)


def test_recycled_memory():
    """An array of bfloat16 over a piece of the pool is a view of integers over it."""
    shape = (memory_pool.LARGE // 2 + 1,)
    for array in (
        memory_pool.empty(shape, B.numpy),
        memory_pool.allocator(shape, B.numpy)(),
    ):
        assert (array.shape, array.dtype, array.flags.writeable) == (shape, B.numpy, True)
        assert CpuBackend().owns_memory(array)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_chain_keeps_no_float32(dtype):
    """A compiled chain of widened calls is one group, whose only outputs are narrow."""
    x = tp.ones((1 << 16,), dtype=dtype)
    program = tp.compile(lambda x: tp.log_sum_exp(tp.tanh(x * 0.5) + x)).program(x)
    assert [len(program.fusion.groups), len(program.fusion.alone)] == [1, 0]
    (group,) = program.fusion.groups
    assert [value.placement.type.dtype.name for value in group.outputs] == [dtype]
