"""Groups over NumPy, block by block: each operation, each layout, each form of reduction."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    Reduction,
    TensorType,
    expressions,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import blocks
from tensorplug_cpu.blocks import groups

pytestmark = pytest.mark.usefixtures("_small_blocks")

RNG = np.random.default_rng(7)
parameter = expressions.parameter


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small arrays take many blocks, and threads share them."""
    monkeypatch.setattr(groups, "LEAST", 2)
    monkeypatch.setattr(groups, "BLOCK", 64)
    monkeypatch.setattr(groups, "_SHARED", 500)
    monkeypatch.setattr(groups, "_SMALL", 1)


def own(shape: Any, spans: Any) -> tuple[int, ...]:
    """Return the shape with 1 where an operand does not span."""
    return tuple(length if along else 1 for length, along in zip(shape, spans, strict=True))


def group_of(
    shape: tuple[int, ...],
    inputs: list[tuple[dt.DType, tuple[bool, ...]]],
    outputs: list[Any],
    reductions: tuple[Reduction, ...] = (),
    spans: Any = None,
) -> Group:
    """Return a group whose buffers have the group's axes, with 1 where they do not span."""
    everywhere = (True,) * len(shape)
    spans = spans or [everywhere] * len(outputs)
    return Group(
        "test",
        shape,
        tuple(GroupInput(TensorType(dtype, own(shape, each)), each) for dtype, each in inputs),
        reductions,
        tuple(
            GroupOutput(each, TensorType(each.dtype, own(shape, along)), along)
            for each, along in zip(outputs, spans, strict=True)
        ),
    )


def run(group: Group, *arrays: Any) -> list[Any]:
    """Run a group twice; check that the results are equal, their types, and the inputs' values."""
    before = [array.copy() for array in arrays]
    call = blocks.compile_group(group)
    assert call is not None
    results, again = call(*arrays), call(*arrays)
    for result, other, output in zip(results, again, group.outputs, strict=True):
        assert (result.dtype, result.shape) == (output.type.dtype.numpy, output.type.shape)
        np.testing.assert_array_equal(result, other)
        assert not np.shares_memory(result, other)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    return list(results)


# Operations -----------------------------------------------------------------------------


def test_quotients_of_infinities_and_zeros():
    a = np.array([np.inf, -np.inf, 1, -1, 0, 5] * 20, np.float32)
    b = np.array([2, 2, 0, 0, 0, np.inf] * 20, np.float32)
    root = expressions.apply("floor_divide", parameter(0, dt.float32), parameter(1, dt.float32))
    (result,) = run(group_of((120,), [(dt.float32, (True,))] * 2, [root]), a, b)
    np.testing.assert_array_equal(result[:6], [np.inf, -np.inf, np.inf, -np.inf, np.nan, 0])


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5])
def test_power_by_a_number(exponent: float):
    x = RNG.uniform(0, 3, 150).astype(np.float32)
    given = expressions.function("pow", parameter(0, dt.float32), exponent)
    (result,) = run(group_of((150,), [(dt.float32, (True,))], [given]), x)
    np.testing.assert_allclose(result, x.astype(np.float64) ** exponent, rtol=3e-7)


def test_the_same_bits_as_a_chain_of_numpy_calls():
    x, y = (RNG.standard_normal(777).astype(np.float32) for _ in range(2))
    a, b = parameter(0, dt.float32), parameter(1, dt.float32)
    root = expressions.function("tanh", a * b + 0.25) * b - expressions.where(a < b, a, b) / 3
    (result,) = run(group_of((777,), [(dt.float32, (True,))] * 2, [root]), x, y)
    expected = np.tanh(x * y + np.float32(0.25)) * y - np.where(x < y, x, y) / np.float32(3)
    np.testing.assert_array_equal(result, expected)


# Layouts --------------------------------------------------------------------------------

SHAPES = [(1000,), (40, 25), (3, 400), (400, 3), (6, 7, 8), (2, 130, 3), (3, 4, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block", [64, 512, 1 << 14])
def test_each_layout(shape: tuple[int, ...], block: int, monkeypatch):
    monkeypatch.setattr(groups, "BLOCK", block)
    everywhere = (True,) * len(shape)
    for spans in itertools.product([False, True], repeat=len(shape)):
        x, y, z = (
            RNG.standard_normal(own(shape, each)).astype(np.float32)
            for each in (everywhere, spans, everywhere)
        )
        a, b, c = (parameter(at, dt.float32) for at in range(3))
        narrow = b * b + 1  # of the operand alone
        roots = [expressions.apply("maximum", a, b) * narrow - c, a + narrow, narrow]
        inputs = [(dt.float32, each) for each in (everywhere, spans, everywhere)]
        found = run(group_of(shape, inputs, roots, spans=[everywhere] * 2 + [spans]), x, y, z)
        expected = [np.maximum(x, y) * (y * y + 1) - z, x + (y * y + 1), y * y + 1]
        for result, array in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result, array)


def test_an_output_may_be_repeated_or_an_input_or_another_output():
    x = RNG.standard_normal((5, 1)).astype(np.float32)
    a = parameter(0, dt.float32)
    roots = [a, a * 2, a * 2, expressions.constant(3, dt.int8)]
    found = run(group_of((5, 40), [(dt.float32, (True, False))], roots), x)
    for result, expected in zip(found, [x, x * 2, x * 2, 3], strict=True):
        np.testing.assert_array_equal(result, np.broadcast_to(expected, (5, 40)))


@pytest.mark.parametrize("how", ["transposed", "strided", "broadcast"])
def test_inputs_that_lie_otherwise(how: str):
    x = RNG.standard_normal((30, 40)).astype(np.float32)
    array = {
        "transposed": x.T.copy().T,
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "broadcast": np.broadcast_to(x[:1], (30, 40)),
    }[how]
    a = parameter(0, dt.float32)
    for shape, spans in (((30, 40), (True, True)), ((1200,), (True,))):
        group = Group(
            "test",
            shape,
            (GroupInput(TensorType(dt.float32, (30, 40)), spans),),
            (),
            (GroupOutput(a * 2 + 1, TensorType(dt.float32, (30, 40)), spans),),
        )
        np.testing.assert_array_equal(run(group, array)[0], array * 2 + 1)


@pytest.mark.parametrize("reads_later", [False, True])
def test_an_output_into_the_memory_of_an_input(reads_later: bool):
    """Also if the input is read after the output is computed, or by a body that reads last."""
    a, b = parameter(0, dt.float32), parameter(1, dt.float32)
    chosen = expressions.where(a < b, b, a)
    for root in (a * b + 1, chosen):
        group = group_of((777,), [(dt.float32, (True,))] * 2, [root, a - b])
        if not reads_later:
            group = replace(group, outputs=group.outputs[:1])
        first = replace(group.outputs[0], into=0)
        call = blocks.compile_group(replace(group, outputs=(first, *group.outputs[1:])))
        x, y = (RNG.standard_normal(777).astype(np.float32) for _ in range(2))
        expected = [x * y + 1 if root is not chosen else np.where(x < y, y, x), x - y]
        kept = y.copy()
        results = call(x, y)
        assert np.shares_memory(results[0], x)
        np.testing.assert_array_equal(y, kept)
        for result, array in zip(results, expected, strict=False):
            np.testing.assert_array_equal(result, array)


def test_memory_that_cannot_be_written_into_is_left():
    a = parameter(0, dt.float32)
    group = group_of((777,), [(dt.float32, (True,))], [a * 2])
    group = replace(group, outputs=(replace(group.outputs[0], into=0),))
    x = RNG.standard_normal(777).astype(np.float32)
    x.setflags(write=False)
    np.testing.assert_array_equal(run(group, x)[0], x * 2)


# Reductions -----------------------------------------------------------------------------

REDUCE = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("op", REDUCE)
@pytest.mark.parametrize("dtype", [dt.float16, dt.float32, dt.float64, dt.int32], ids=str)
@pytest.mark.parametrize("block", [64, 1 << 12, 1 << 16])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1000,), (True,)),
        ((40, 25), (False, True)),
        ((40, 25), (True, False)),
        ((5, 20, 10), (True, False, True)),
        ((5, 20, 10), (False, True, False)),
        ((5, 20, 10), (False, True, True)),
    ],
    ids=str,
)
def test_each_reduction(op: str, dtype: dt.DType, block: int, shape: Any, axes: Any, monkeypatch):
    monkeypatch.setattr(groups, "BLOCK", block)
    rng = np.random.default_rng(4)  # its own: the draws do not depend on which tests ran before
    x = rng.uniform(0.5, 1.5, shape) if op == "prod" else rng.uniform(-4, 4, shape)
    x = x.astype(dtype.numpy)
    a = parameter(0, dtype)
    kept = tuple(not axis for axis in axes)
    total = parameter(1, dtype)
    group = group_of(
        shape,
        [(dtype, (True,) * len(shape))],
        [total + 1, a * 2],
        (Reduction(op, abs(a), axes),),  # type: ignore[arg-type]  # one of the four
        spans=[kept, (True,) * len(shape)],
    )
    result, other = run(group, x)
    along = tuple(at for at, axis in enumerate(axes) if axis)
    wide = np.abs(x).astype(np.int64 if dtype is dt.int32 else np.float64)
    expected = REDUCE[op](wide, axis=along, keepdims=True) + 1
    if dtype is dt.int32:
        np.testing.assert_array_equal(result, expected.astype(np.int32))
    else:
        np.testing.assert_allclose(result, expected, rtol=4 * float(np.finfo(dtype.numpy).eps))
    np.testing.assert_array_equal(other, x * 2)


@pytest.mark.parametrize("shape", [(90, 8), (3, 200), (1, 16), (7, 5, 3)], ids=str)
def test_softmax_of_rows_after_a_chain(shape: tuple[int, ...], monkeypatch):
    monkeypatch.setattr(groups, "BLOCK", 1 << 11)
    axes = (False,) * (len(shape) - 1) + (True,)
    kept = tuple(not axis for axis in axes)
    x, scale = (
        RNG.standard_normal(shape),
        RNG.standard_normal((1,) * (len(shape) - 1) + shape[-1:]),
    )
    a, b = parameter(0, dt.float64), parameter(1, dt.float64)
    largest, total = parameter(2, dt.float64), parameter(3, dt.float64)
    power = expressions.function("exp", a * b - largest)
    group = group_of(
        shape,
        [(dt.float64, (True,) * len(shape)), (dt.float64, axes)],
        [power / total, largest + expressions.function("log", total)],
        (Reduction("max", a * b, axes), Reduction("sum", power, axes)),
        spans=[(True,) * len(shape), kept],
    )
    result, norm = run(group, x, scale)
    powers = np.exp(x * scale)
    np.testing.assert_allclose(result, powers / powers.sum(-1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(norm, np.log(powers.sum(-1, keepdims=True)), rtol=1e-13)


def test_a_long_sum_is_as_accurate_as_one_in_pairs(monkeypatch):
    monkeypatch.setattr(groups, "BLOCK", 1 << 18)
    count = 1 << 20
    for shape, axes in (((count,), (True,)), ((count // 4, 4), (True, False))):
        x = np.full(shape, 0.1, np.float32)
        a = parameter(0, dt.float32)
        kept = tuple(not axis for axis in axes)
        group = group_of(
            shape,
            [(dt.float32, (True,) * len(shape))],
            [parameter(1, dt.float32)],
            (Reduction("sum", abs(a), axes),),
            spans=[kept],
        )
        (result,) = run(group, x)
        terms = prod(length for length, axis in zip(shape, axes, strict=True) if axis)
        exact = float(np.float32(0.1)) * terms
        assert np.all(np.abs(result - exact) <= np.finfo(np.float32).eps * 20 * exact)


# What is declined -----------------------------------------------------------------------


def test_declines(monkeypatch):
    a, total = parameter(0, dt.float32), parameter(1, dt.float32)
    one = [(dt.float32, (True,))]
    whole = (Reduction("sum", a, (True,)),)
    far = expressions.function("erfc", a)
    assert blocks.compile_group(group_of((1000,), one, [far * 2])) is None
    monkeypatch.setattr(groups, "_SMALL", 16)
    assert blocks.compile_group(group_of((1000,), one, [a / total], whole)) is None  # two passes
    assert blocks.compile_group(group_of((16,), one, [a / total], whole)) is not None
    monkeypatch.setattr(groups, "LEAST", 100)
    assert blocks.compile_group(group_of((99,), one, [a * 2])) is None
    assert blocks.compile_group(group_of((100,), one, [a * 2])) is not None


def test_division_by_zero_is_silent():
    a = parameter(0, dt.float32)
    (result,) = run(
        group_of((1000,), [(dt.float32, (True,))], [a / a]), np.zeros(1000, np.float32)
    )
    assert np.isnan(result).all()
