"""Stacks of matrix products of a size at which they are shared out: see ``matrix_products``."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.codegen.compiler import is_available
from tensorplug_cpu.jit.codegen.settings import least_elements
from tensorplug_cpu.kernels import matrix_products

RNG = np.random.default_rng(3)
SIZES = {"0": (70, 64, 80), "1": (71, 64, 80)}  # rows, inner, columns, by the setting of loops


@pytest.fixture(autouse=True)
def _on_the_cpu():
    with tp.use_backend("cpu"):
        yield


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("stack", [(5,), (1, 4), (3, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("loops", SIZES)
def test_values(loops, stack, turned, dtype, monkeypatch):
    """By BLAS, product by product in several threads, and by native loops where LLVM is there."""
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", loops)
    shared = []
    in_parts = matrix_products.in_parts

    def counted(work, count):
        shared.append(count)
        in_parts(work, count)

    monkeypatch.setattr(matrix_products, "in_parts", counted)
    rows, inner, columns = SIZES[loops]
    a = RNG.standard_normal((*stack, rows, inner)).astype(dtype)
    b = RNG.standard_normal((*stack, inner, columns)).astype(dtype)
    right = np.einsum("...ij,...jk->...ik", a.astype(np.float64), b.astype(np.float64))
    given = [x.swapaxes(-1, -2) if turn else x for x, turn in zip((a, b), turned, strict=True)]
    found = tp.linalg.matmul(*given, transpose_a=turned[0], transpose_b=turned[1])
    by_blas = loops == "0" or not is_available()
    assert shared == [next(length for length in stack if length > 1)] * by_blas
    assert found.shape == right.shape
    assert str(found.dtype) == dtype
    close = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
    np.testing.assert_allclose(found.numpy(), right, rtol=close, atol=close * 30)


@pytest.mark.parametrize(
    ("a", "b"), [((4, 8, 8), (4, 8, 8)), ((4, 70, 64), (1, 64, 80)), ((1, 70, 64), (1, 64, 80))]
)
def test_other_products_are_not_shared_out(a, b, monkeypatch):
    monkeypatch.setattr(matrix_products, "in_parts", None)
    left, right = (RNG.standard_normal(shape).astype(np.float32) for shape in (a, b))
    expected = np.einsum("...ij,...jk->...ik", *(x.astype(np.float64) for x in (left, right)))
    found = tp.matmul(left, right)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("op", ["product", "with bias"])
def test_few_rows_take_one_thread_of_blas_or_loops(op, turned, dtype, monkeypatch):
    """Its threads would spin after so short a product. Loops need LLVM."""
    monkeypatch.setattr(matrix_products, "thread_count", lambda: 2)
    ran = []
    run = matrix_products.one_thread_each.run

    def counted(work):
        ran.append(work)
        run(work)

    monkeypatch.setattr(matrix_products.one_thread_each, "run", counted)
    a, b, bias = (
        RNG.standard_normal(shape).astype(dtype) / 8 for shape in ((1, 700), (700, 450), (450,))
    )
    expected = a.astype("f8") @ b.astype("f8")
    given = np.ascontiguousarray(b.T) if turned else b
    if op == "product":
        found = tp.linalg.matmul(a, given, transpose_b=turned)
    else:
        expected = np.maximum(expected + bias, 0)
        found = tp.nn.fused_matmul(a, given, transpose_b=turned, bias=bias, activation="relu")
    assert len(ran) == (least_elements() is None)
    assert (found.shape, str(found.dtype)) == (expected.shape, dtype)
    close = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(found.numpy(), expected, rtol=close, atol=close)


@pytest.mark.parametrize(
    ("a", "b", "threads"),
    [
        ((1, 500), (500, 500), 2),  # soon over
        ((1, 3000), (3000, 2000), 2),  # long
        ((16, 200), (200, 200), 2),  # many rows
        ((1, 701), (701, 450), 1),  # there is one thread
        ((2, 1, 200), (2, 200, 700), 2),  # two matrices
    ],
)
def test_other_rows_take_all_threads(a, b, threads, monkeypatch):
    monkeypatch.setattr(matrix_products, "thread_count", lambda: threads)
    monkeypatch.setattr(matrix_products.one_thread_each, "run", None)
    left, right = (RNG.standard_normal(shape).astype(np.float32) for shape in (a, b))
    expected = np.einsum("...ij,...jk->...ik", *(x.astype(np.float64) for x in (left, right)))
    np.testing.assert_allclose(tp.matmul(left, right).numpy(), expected, rtol=1e-4, atol=1e-3)
