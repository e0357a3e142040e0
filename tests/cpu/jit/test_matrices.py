"""Matrix products by native loops, against products of integers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tensorplug_cpu.jit.families import matrices
from tensorplug_cpu.jit.loops import calls

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
]


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """On any processor, and for any size."""
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "always")
    monkeypatch.setattr(matrices, "_VECTOR", 0)


def numbers(shape, dtype):
    """Return multiples of 1/8, whose sums of products are exact."""
    rng = np.random.default_rng(prod(shape))
    return (rng.integers(-8, 9, shape) / 8).astype(dtype)


def expected(a, b, *, transpose_a, transpose_b):
    left, right = ((8 * x).astype(np.int64) for x in (a, b))
    left = left.swapaxes(-1, -2) if transpose_a else left
    right = right.swapaxes(-1, -2) if transpose_b else right
    return np.einsum("...ij,jk->...ik", left, right) / 64


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
def test_the_same_bits_in_any_number_of_threads(monkeypatch, transpose_a):
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(shape, dtype="float32") for shape in ((300, 300), (300, 299)))
    turned = {"transpose_a": transpose_a, "transpose_b": False}
    results = []
    for least in (1, 1 << 60):
        monkeypatch.setattr(calls, "_SHARED", least)
        results.append(matrices.product(x.shape, y.shape, x.dtype, **turned)(x, y))
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


def test_small_products_and_narrow_vectors_stay_with_blas(monkeypatch):
    turned = {"transpose_a": False, "transpose_b": False}
    large, small = ((256, 256), (256, 256)), ((128, 128), (128, 128))
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "1")
    assert matrices.product(*large, np.dtype("float32"), **turned) is not None
    assert matrices.product(*small, np.dtype("float32"), **turned) is None
    monkeypatch.setattr(matrices, "_VECTOR", 1 << 10)
    assert matrices.product(*large, np.dtype("float32"), **turned) is None
