"""Groups of calls in compiled programs on the CPU: what runs together, and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu import groups
from tensorplug_cpu.blocks import groups as blocks
from tensorplug_cpu.jit.codegen.settings import JIT

pytestmark = pytest.mark.usefixtures("_small_blocks")

RNG = np.random.default_rng(3)


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let small arrays take many blocks, and threads share them; NumPy computes all groups."""
    monkeypatch.setenv(JIT, "0")
    monkeypatch.setattr(groups, "_LEAST", 2)
    monkeypatch.setattr(blocks, "LEAST", 2)
    monkeypatch.setattr(blocks, "BLOCK", 64)
    monkeypatch.setattr(blocks, "_SHARED", 500)
    monkeypatch.setattr(blocks, "_SMALL", 1)
    with tp.use_backend("cpu"):
        yield


def fused(compiled: Any) -> list[str]:
    """Return the names of what the only program of a function calls."""
    (special,) = compiled._known.values()
    return [step.call.name for step in special.executable._steps]


def check(f: Any, *args: Any, together: list[str], ulp: int = 0) -> None:
    """Compare a compiled function with itself, bit by bit, and with what should be together."""
    compiled = tp.compile(f)
    for _ in range(2):
        ours, theirs = compiled(*args), f(*args)
        for mine, other in zip(_listed(ours), _listed(theirs), strict=True):
            assert mine.type == other.type
            if ulp:
                np.testing.assert_array_max_ulp(mine.numpy(), other.numpy(), ulp)
            else:
                np.testing.assert_array_equal(mine.numpy(), other.numpy())
    assert fused(compiled) == together


def _listed(result: Any) -> list[tp.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def numbers(*shape: int, dtype: Any = np.float32) -> tp.Tensor:
    """Return positive and negative numbers."""
    return tp.asarray((RNG.standard_normal(shape) * 3).astype(dtype))


def test_chain_becomes_one_call():
    def f(x, y):
        return tp.maximum(tp.sqrt(tp.abs(x * 2 + y)), 0.5) / (y * y + 1)

    chain = "Multiply+Add+Abs+Sqrt+Maximum+Multiply+Add+RealDiv"
    for size in (1000, 64, 17, 3):
        check(f, numbers(size), numbers(size), together=[chain])
    check(f, numbers(11, 9), numbers(11, 9), together=[chain])


def test_results_used_outside_are_outputs():
    def f(x):
        a = tp.sin(x)
        b = a * a
        c = b + 1
        return c / x, a, tp.sum(b, axis=0)

    check(f, numbers(7, 30), together=["Sin+Multiply+Add+RealDiv+Sum"], ulp=4)


def test_rows_columns_and_numbers_beside_all_elements():
    row, column, one = numbers(30), numbers(21, 1), numbers(1, 1)

    def rows(x):
        return (x + row) * tp.reshape(row, (1, 30)) - one

    def columns(x):
        return tp.exp(x - column) * column + 2

    def both(x):
        return ((x + row) * column - row) / column

    check(rows, numbers(21, 30), together=["Add+Multiply+Sub"])
    check(columns, numbers(21, 30), together=["Sub+Exp+Multiply+Add"])
    check(both, numbers(21, 30), together=["Add+Multiply+Sub+RealDiv"])
    short = numbers(22, 1)  # five rows at a time, and two at the end
    check(lambda x: (x - short) * short + 2, numbers(22, 3), together=["Sub+Multiply+Add"])
    long = numbers(200)
    check(lambda x: (x + long) * long, numbers(5, 200), together=["Add+Multiply"])
    check(lambda x: (x + long[:20]) * x, numbers(5, 4, 20), together=["Add+Multiply"])


def test_inputs_along_any_axes():
    plane, row, other = numbers(1, 6, 1), numbers(7), numbers(6, 7)

    def f(x):
        return tp.abs((x + 1) * plane) - 2

    check(f, numbers(5, 6, 7), together=["Add+Multiply+Abs+Sub"])
    check(lambda x: (x + row) * other * 2, numbers(5, 6, 7), together=["Add+Multiply+Multiply"])


def test_transposed_inputs():
    check(lambda x: (x.T + 1) * 2, numbers(12, 20), together=["Transpose", "Add+Multiply"])


def test_result_used_outside_ends_a_chain():
    def f(x):
        a = x * 2
        b = a + 1
        total = tp.sort(b, axis=0)
        return (a - b) * total

    check(f, numbers(9, 9), together=["Multiply+Add", "Sort", "Sub+Multiply"])


def test_chains_of_several_branches_meet():
    def f(x, y):
        return tp.sin(x) * 2 + tp.cos(y) / 3

    check(f, numbers(90), numbers(90), together=["Sin+Multiply+Cos+RealDiv+Add"])


def test_several_dtypes_in_one_chain():
    def f(x):
        whole = tp.astype(tp.astype(x > 0, tp.int32) * 3, tp.float64) + 0.5
        return tp.where(x < 1, whole, -whole), tp.logical_not(x > 0)

    chain = "Greater+Cast+Multiply+Cast+Add+Less+Neg+Select+..."
    check(f, numbers(5000), together=[chain])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.complex64])
def test_kernels_of_several_passes(dtype):
    x = numbers(1000, dtype=np.float64)
    x = tp.asarray(x.numpy().astype(dtype))

    def f(x):
        return tp.square(x) * 2 + tp.nn.sigmoid(x) if dtype != np.complex64 else tp.square(x) * 2

    compiled = tp.compile(f)
    compiled(x)
    error = np.abs(compiled(x).numpy() - f(x).numpy())
    assert np.all(error <= 2 * np.finfo(dtype).eps * np.abs(f(x).numpy()))


def _relus(x):
    return tp.nn.relu(x - 1) + tp.nn.relu6(x * 2)


def _moving(x):
    return tp.multiply_add(x, 0.5, x + 1) * 2


def _powers(x):
    return (x**2 + tp.abs(x) ** 1.5) * tp.rsqrt(x * x + 1)


def _chosen(x):
    return tp.where(x > 0, x * 2, 0.0) + tp.where(x < 0, x, x + 3)


def _clipped(x):
    return tp.clip(tp.squared_difference(x, 1.5), 0.25, 2.0) + tp.reciprocal(x * x + 1)


def _divided(x):
    return tp.div_no_nan(x, tp.nn.relu(x)) + x


@pytest.mark.parametrize("f", [_relus, _moving, _powers, _chosen, _clipped, _divided])
@pytest.mark.parametrize("size", [5000, 40_000])
def test_each_kind_of_kernel(f, size, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4096)
    x = numbers(size)
    compiled = tp.compile(f)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x).numpy(), f(x).numpy())
    assert any("+" in name for name in fused(compiled))


def test_inputs_are_not_written_into():
    x, y = numbers(300), numbers(300)
    before = x.numpy().copy(), y.numpy().copy()
    tp.compile(lambda x, y: tp.sqrt(tp.abs(x + y)) * x - y)(x, y)
    np.testing.assert_array_equal(x.numpy(), before[0])
    np.testing.assert_array_equal(y.numpy(), before[1])


def test_replaced_kernel_is_not_fused():
    def shifted(x):
        return np.sin(x) + 1

    x = numbers(300)
    with tp.register_kernel("Sin", "cpu", shifted, override=True):
        compiled = tp.compile(lambda x: tp.sin(x * 2) * 3 + 1)
        result = compiled(x)
        assert fused(compiled) == ["Multiply", "Sin", "Multiply+Add"]
    np.testing.assert_allclose(result.numpy(), (np.sin(x.numpy() * 2) + 1) * 3 + 1, rtol=1e-6)


def test_small_arrays_are_left_alone(monkeypatch):
    monkeypatch.setattr(groups, "_LEAST", 100)
    check(lambda x: x * 2 + 1, numbers(99), together=["Multiply", "Add"])
    check(lambda x: x * 2 + 1, numbers(100), together=["Multiply+Add"])


def test_division_by_zero_is_silent():
    x = tp.asarray(np.zeros(300, np.float32))
    assert np.isnan(tp.compile(lambda x: x / x + 1)(x).numpy()).all()


def test_results_are_let_go():
    x = numbers(1 << 20)
    compiled = tp.compile(lambda x: tp.abs(x * 2) + 1)
    compiled(x)
    held = tp.memory().bytes
    result = compiled(x)
    assert tp.memory().bytes == held + result.nbytes
    del result
    assert tp.memory().bytes == held


# Reductions at the end ------------------------------------------------------------------


def close(f: Any, *args: Any, together: list[str]) -> None:
    """Compare as ``check`` does; sums may be rounded otherwise."""
    compiled = tp.compile(f)
    for _ in range(2):
        for mine, other in zip(_listed(compiled(*args)), _listed(f(*args)), strict=True):
            assert mine.type == other.type
            np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=2e-6)
    assert fused(compiled) == together


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sum_of_all_elements_is_an_epilogue(dtype):
    x = numbers(1000, dtype=dtype)
    close(lambda x: tp.sum(tp.abs(x) + 1), x, together=["Abs+Add+Sum"])
    close(lambda x: tp.mean(tp.abs(x) + 1), x, together=["Abs+Add+Mean"])
    square = tp.reshape(x, (25, 40))
    close(lambda x: tp.sum(tp.abs(x) + 1, keepdims=True), square, together=["Abs+Add+Sum"])
    column = numbers(25, 1, dtype=dtype)
    chain = "Multiply+Add+Multiply+Add+Mean"
    close(lambda x: tp.mean((x * x + column) * column + 50), square, together=[chain])


def test_multiple_epilogues_and_a_result():
    def f(x):
        y = tp.abs(x) + 1
        return tp.sum(y), tp.mean(y * 2), y

    chain = ["Abs+Add+Sum+Multiply+Mean"]
    close(f, numbers(1000), together=chain)
    close(lambda x: f(x)[:2], numbers(1000), together=chain)


def test_use_of_a_sum_comes_after_its_chain(monkeypatch):
    monkeypatch.setattr(blocks, "_SMALL", 8)

    def f(x):
        y = tp.abs(x) + 1
        return y / tp.sum(y) - 0.5

    close(f, numbers(1000), together=["Abs+Add+Sum", "RealDiv+Sub"])


def test_sums_along_an_axis():
    x = numbers(20, 50)
    for axis in (0, 1):
        for keepdims in (False, True):
            close(
                lambda x, axis=axis, keepdims=keepdims: tp.sum(
                    tp.abs(x) + 1, axis=axis, keepdims=keepdims
                ),
                x,
                together=["Abs+Add+Sum"],
            )
    close(tp.sum, x, together=["Sum"])
    whole = tp.asarray(np.arange(1000, dtype=np.int32))
    close(lambda x: tp.sum(x * 2 + 1), whole, together=["Multiply+Add+Sum"])


def test_the_error_of_a_long_sum():
    """It grows with the logarithm of the number of terms, as that of the kernel does."""
    x = tp.asarray(np.full(1 << 20, 0.1, np.float32))
    result = float(tp.compile(lambda x: tp.sum(tp.abs(x) * 1.0))(x))
    exact = float(np.float32(0.1)) * (1 << 20)
    assert abs(result - exact) <= np.finfo(np.float32).eps * 20 * exact
