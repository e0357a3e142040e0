"""Matrix products by native loops, against products of integers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tensorplug_cpu.jit.codegen import functions
from tensorplug_cpu.jit.families import matrices, multiplication
from tensorplug_cpu.jit.families.filter_gradients import FilterGradient
from tensorplug_cpu.jit.families.multiplication import Multiplication
from tensorplug_cpu.jit.loops import calls, products

pytest.importorskip("llvmlite")

# a, b, as given; whether they are transposed
PRODUCTS = [
    ((64, 48), (48, 32), False, False),
    ((17, 19), (19, 23), False, False),  # no width divides the rows
    ((3, 5, 32, 40), (40, 50), False, False),
    ((96, 700), (700, 16), False, True),
    ((40, 64), (40, 33), True, False),
    ((700, 30), (700, 70), True, True),
    ((1024, 64), (64, 100), False, True),
    ((1024, 64), (1024, 17), True, False),
    ((1024, 150), (1024, 450), True, True),  # wide, and two blocks of terms
]
STACKS = [
    ((3, 16, 16), (3, 16, 16)),
    ((2, 3, 40, 70), (2, 3, 70, 33)),
    ((2, 17, 400), (2, 400, 65)),
    ((2, 130, 20), (2, 20, 600)),
]


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """On any processor, and for any size."""
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "always")
    monkeypatch.setattr(matrices, "_LONG", 0)


def numbers(shape, dtype):
    """Return multiples of 1/8, whose sums of products are exact."""
    rng = np.random.default_rng(prod(shape))
    return (rng.integers(-8, 9, shape) / 8).astype(dtype)


def expected(a, b, *, transpose_a, transpose_b):
    left, right = ((8 * x).astype(np.int64) for x in (a, b))
    left = left.swapaxes(-1, -2) if transpose_a else left
    right = right.swapaxes(-1, -2) if transpose_b else right
    return np.einsum("...ij,...jk->...ik", left, right) / 64


def same(found, wanted, dtype):
    assert (found.shape, found.dtype) == (wanted.shape, dtype)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("a", "b", "transpose_a", "transpose_b"), PRODUCTS)
def test_products(a, b, transpose_a, transpose_b, dtype):
    if transpose_b:
        b = b[::-1]
    turned = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    run = matrices.product(a, b, np.dtype(dtype), **turned)
    x, y = numbers(a, dtype), numbers(b, dtype)
    same(run(x, y), expected(x, y, **turned), dtype)
    strided = [np.repeat(each, 2, axis=-1)[..., ::2] for each in (x, y)]
    same(run(*strided), expected(x, y, **turned), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize(("a", "b"), STACKS)
def test_stacks(monkeypatch, a, b, transpose_a, transpose_b, dtype):
    monkeypatch.setattr(matrices, "_LEAST_LONG", 1)
    a = (*a[:-2], a[-1], a[-2]) if transpose_a else a
    b = (*b[:-2], b[-1], b[-2]) if transpose_b else b
    turned = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    run = matrices.stacked_product(a, b, np.dtype(dtype), **turned)
    x, y = numbers(a, dtype), numbers(b, dtype)
    wanted = expected(
        x, y.swapaxes(-1, -2) if transpose_b else y, transpose_a=transpose_a, transpose_b=False
    )
    same(run(x, y), wanted, dtype)
    same(run.bind(y)(x), wanted, dtype)
    moved = [np.ascontiguousarray(each.swapaxes(-1, -2)).swapaxes(-1, -2) for each in (x, y)]
    same(run(*moved), wanted, dtype)
    same(run(np.repeat(x, 2, axis=-2)[..., ::2, :], y[..., ::-1][..., ::-1]), wanted, dtype)


@pytest.mark.parametrize(("width", "registers"), [(16, 16), (16, 32), (32, 16), (64, 32)])
def test_vectors_of_every_width(monkeypatch, width, registers):
    """What is written for other processors is right too."""
    monkeypatch.setattr(functions, "vector_bytes", lambda: width)
    monkeypatch.setattr(products, "registers", lambda: registers)
    for number, product in enumerate(PRODUCTS):
        test_products(*product, ("float32", "float64")[number % 2])
    test_stacks(monkeypatch, *STACKS[1], transpose_a=True, transpose_b=True, dtype="float32")
    test_stacks(monkeypatch, *STACKS[3], transpose_a=False, transpose_b=False, dtype="float32")
    test_endings("slope")


@pytest.mark.parametrize("epilogue", ["linear", "relu", "relu6", "slope"])
def test_endings(epilogue):
    x, y = numbers((2, 24, 600), "float32"), numbers((600, 40), "float32")
    bias, slope = numbers((40,), "float32"), numbers((2, 40), "float32")[1]
    run = matrices.product(x.shape, y.shape, x.dtype, transpose_a=False, transpose_b=False)
    plain = expected(x, y, transpose_a=False, transpose_b=False) + bias
    assert (plain < 0).any()
    assert (plain > 6).any()
    wanted = {
        "linear": plain,
        "relu": np.maximum(plain, 0),
        "relu6": np.clip(plain, 0, 6),
        "slope": np.where(plain < 0, plain * slope, plain).astype(np.float32),
    }[epilogue]
    same(run(x, y, bias, slope, epilogue), wanted, np.float32)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("stack", [(), (3,)])
def test_the_same_bits_in_any_number_of_threads(monkeypatch, stack, transpose_a):
    rng = np.random.default_rng(2)
    a, b = (*stack, *((180, 300) if transpose_a else (300, 180))), (*stack, 180, 299)
    x, y = (rng.standard_normal(shape, dtype="float32") for shape in (a, b))
    turned = {"transpose_a": transpose_a, "transpose_b": False}
    make = matrices.stacked_product if stack else matrices.product
    results = []
    for least, threads in ((1, 8), (1 << 60, 1)):
        monkeypatch.setattr(calls, "_SHARED", least)
        monkeypatch.setattr(multiplication, "thread_count", lambda threads=threads: threads)
        results.append(make(a, b, x.dtype, **turned)(x, y))
    np.testing.assert_array_equal(*results)


DECLINED = {
    "few rows": ((15, 64), (64, 64), "float32"),
    "few terms": ((64, 8), (8, 64), "float32"),
    "few columns": ((64, 64), (64, 4), "float32"),
    "many matrices": ((4, 64, 64), (4, 64, 64), "float32"),
    "integers": ((64, 64), (64, 64), "int32"),
    "complex": ((64, 64), (64, 64), "complex64"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_blas_does(name):
    a, b, dtype = DECLINED[name]
    turned = {"transpose_a": False, "transpose_b": False}
    assert matrices.product(a, b, np.dtype(dtype), **turned) is None


STACKS_FOR_BLAS = {
    "one product": ((1, 64, 64), (1, 64, 64), "float32"),
    "one matrix": ((4, 64, 64), (64, 64), "float32"),
    "one matrix for several products": ((4, 64, 64), (1, 64, 64), "float32"),
    "few columns": ((4, 64, 64), (4, 64, 15), "float32"),
    "large products": ((4, 256, 256), (4, 256, 256), "float32"),
    "integers": ((4, 64, 64), (4, 64, 64), "int32"),
}


@pytest.mark.parametrize("name", STACKS_FOR_BLAS)
def test_stacks_that_blas_computes(name):
    a, b, dtype = STACKS_FOR_BLAS[name]
    turned = {"transpose_a": False, "transpose_b": False}
    assert matrices.stacked_product(a, b, np.dtype(dtype), **turned) is None


# a, b; the loops of long vectors and of others, None for BLAS's
CHOICES = [
    ((256, 256), (256, 256), False, Multiplication, Multiplication),
    ((128, 128), (128, 128), False, None, None),  # little work
    ((512, 512), (512, 512), False, Multiplication, None),  # much to pack
    ((64, 1024), (1024, 64), False, Multiplication, None),  # for few rows
    ((4096, 64), (64, 64), False, Multiplication, Multiplication),
    ((512, 256), (512, 512), True, Multiplication, None),
    ((4096, 64), (4096, 64), True, FilterGradient, None),
]


@pytest.mark.parametrize(("a", "b", "transpose_a", "long", "short"), CHOICES)
def test_choices(monkeypatch, a, b, transpose_a, long, short):
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "1")
    turned = {"transpose_a": transpose_a, "transpose_b": False}
    for width, kind in ((64, long), (32, short)):
        monkeypatch.setattr(matrices, "_LONG", 64)
        monkeypatch.setattr(matrices, "vector_bytes", lambda width=width: width)
        chosen = matrices.product(a, b, np.dtype("float32"), **turned)
        if kind is FilterGradient:
            assert chosen.__name__ == "run_gradient"
        else:
            assert chosen is None if kind is None else isinstance(chosen, kind)


@pytest.mark.parametrize(("width", "least"), [(64, 64), (32, 16), (16, 16)])
def test_the_smallest_stacks(monkeypatch, width, least):
    monkeypatch.setattr(matrices, "_LONG", 64)
    monkeypatch.setattr(matrices, "vector_bytes", lambda: width)
    turned = {"transpose_a": False, "transpose_b": False}
    for size in (16, 32, 64):
        shape = 64, size, size
        run = matrices.stacked_product(shape, shape, np.dtype("float32"), **turned)
        assert (run is not None) == (size >= least)
