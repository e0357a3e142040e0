"""Groups that write into the memory of their inputs, and memory that must stay as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplug as tp
from tensorplug.compile.fusion import reuse
from tensorplug.compile.programs import memory
from tensorplug.contract import dtypes as dt
from tensorplug.contract.expressions import parameter
from tensorplug.contract.groups import Group, GroupInput, GroupOutput, Reduction
from tensorplug.contract.spec import TensorType
from tensorplug.tensors.tree import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.usefixtures("on_the_cpu")

SIDE = 256
BYTES = 4 * SIDE * SIDE  # of a matrix
RNG = np.random.default_rng(1)


def matrix() -> Any:
    return RNG.standard_normal((SIDE, SIDE)).astype(np.float32)


def address(tensor: Any) -> int:
    return int(tensor.numpy().__array_interface__["data"][0])


# The choice -----------------------------------------------------------------------------

LARGE, OTHER = TensorType(dt.float32, (SIDE, SIDE)), TensorType(dt.int32, (SIDE, SIDE))
WHOLE, ROW = (True, True), (False, True)
FLAT = TensorType(dt.float32, (SIDE * SIDE,))
SMALL = TensorType(dt.float32, (2, 2))
LINE = TensorType(dt.float32, (SIDE,))


@pytest.mark.parametrize(
    ("inputs", "outputs", "dying", "into"),
    [
        ([(LARGE, WHOLE)], [(LARGE, WHOLE)], [0], [0]),
        ([(LARGE, WHOLE)], [(LARGE, WHOLE)], [], [None]),
        ([(LARGE, WHOLE)] * 2, [(LARGE, WHOLE)], [1], [1]),
        ([(LARGE, WHOLE)] * 2, [(LARGE, WHOLE)] * 2, [0, 1], [0, 1]),
        ([(LARGE, WHOLE)], [(LARGE, WHOLE)] * 2, [0], [0, None]),  # each at most once
        ([(OTHER, WHOLE), (LARGE, WHOLE)], [(LARGE, WHOLE)], [0, 1], [1]),
        ([(OTHER, WHOLE)], [(LARGE, WHOLE)], [0], [None]),
        ([(FLAT, WHOLE)], [(LARGE, WHOLE)], [0], [None]),
        ([(SMALL, WHOLE)], [(SMALL, WHOLE)], [0], [None]),
        ([(LINE, ROW), (LARGE, WHOLE)], [(LINE, ROW), (LARGE, WHOLE)], [0, 1], [None, 1]),
    ],
)
def test_which_input_an_output_overwrites(
    inputs: Sequence[Any], outputs: Sequence[Any], dying: Sequence[int], into: Sequence[Any]
) -> None:
    shape = outputs[-1][0].shape
    group = Group(
        "test",
        shape,
        tuple(GroupInput(*each) for each in inputs),
        (),
        tuple(GroupOutput(parameter(0, dt.float32), *each) for each in outputs),
    )
    chosen = reuse.choose_overwritten(group, dying)
    assert [output.into for output in chosen.outputs] == list(into)
    assert reuse.overwritten(chosen) == [at for at in into if at is not None]
    total = Reduction("sum", parameter(0, dt.float32), ROW)
    reduces = reuse.choose_overwritten(replace(group, reductions=(total,)), dying)
    assert reuse.overwritten(reduces) == []


def test_memory_that_is_overwritten_counts_once() -> None:
    # Slots: an argument, a temporary made of it, and the result in the temporary's memory.
    steps: list[Any] = [([1], [], [], 0), ([2], [1], [1], 0)]
    types = [TensorType(dt.float32, (10,))] * 3
    result = memory.plan_memory(types, 1, (), [2], steps)
    assert (result.peak, result.temporaries, result.results, result.reused) == (80, 40, 40, 40)
    donated: Any = memory.plan_memory(types[:2], 1, (), [1], [([1], [0], [0], 0)])
    assert (donated.peak, donated.results, donated.reused) == (40, 40, 40)


# Runs -----------------------------------------------------------------------------------


def test_results_take_the_memory_of_values_that_die() -> None:
    f = tp.compile(lambda x: tp.tanh(tp.sort(x) - 1) * 3)
    stated = f.program(tp.asarray(matrix())).memory()
    assert (stated.temporaries, stated.results) == (BYTES, BYTES)
    assert stated.peak - stated.constants == 2 * BYTES  # else the result would be a third


def later_call(x: Any) -> Any:
    inner = tp.sort(x)
    return tp.tanh(inner - 1) * 3, tp.flip(inner, axis=0)


def later_group(x: Any) -> Any:
    inner = tp.sort(x)
    return tp.tanh(tp.sort(tp.exp(inner) * 2) + 1) * inner


def later_group_that_waits(x: Any) -> Any:
    """The second group reads the value first in order, but runs last."""
    inner = tp.sort(x)
    begun = tp.abs(inner) + 1
    return tp.tanh(inner - 1) * 3, begun * tp.sort(begun), begun


def returned(x: Any) -> Any:
    inner = tp.sort(x)
    return tp.tanh(inner - 1) * 3, inner


@pytest.mark.parametrize("f", [later_call, later_group, later_group_that_waits, returned])
def test_values_that_are_needed_later_stay(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tp.asarray(matrix())
    compiled = [tp.compile(f), tp.compile(f)]
    monkeypatch.setattr(reuse, "LEAST", 1 << 60)
    expected = [compiled[0](x) for _ in range(2)][-1]
    monkeypatch.undo()
    actual = [compiled[1](x) for _ in range(2)][-1]
    for result, right in zip(leaves(actual), leaves(expected), strict=True):
        np.testing.assert_array_equal(result.numpy(), right.numpy())


@pytest.mark.parametrize("jit", ["0", "1"])
def test_a_donated_argument_becomes_the_result(jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", jit)
    f = tp.compile(lambda x: tp.exp(x) * 2 + x, donate=0)
    array = matrix()
    kept = array.copy()
    expected = f(tp.asarray(array)).numpy()
    for _ in range(3):
        x = tp.asarray(array)
        place = address(x)
        y = f(x)
        assert address(y) == place
        np.testing.assert_array_equal(y.numpy(), expected)
    np.testing.assert_array_equal(array, kept)
    assert f.program(tp.asarray(array)).memory().reused == BYTES


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda x: x.numpy(),
    "part of an array": lambda x: x.numpy()[3:, 1:],
    "view": lambda x: tp.reshape(x, (-1,)),
    "transposed": tp.matrix_transpose,
    "memoryview": lambda x: memoryview(x.numpy()),
    "capsule": np.from_dlpack,
    "another tensor": lambda x: x[:],
}


@pytest.mark.parametrize("jit", ["0", "1"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_memory_that_somebody_holds_stays(
    holder: str, jit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", jit)
    f = tp.compile(lambda x: tp.exp(x) * 2 + x, donate=0)
    array = matrix()
    expected = f(tp.asarray(array)).numpy()
    for _ in range(2):
        x = tp.asarray(array)
        held = HOLDERS[holder](x)
        before = np.array(held)
        np.testing.assert_array_equal(f(x).numpy(), expected)
        np.testing.assert_array_equal(np.array(held), before)


def test_memory_of_another_library_stays() -> None:
    f = tp.compile(lambda x: tp.exp(x) * 2 + x, donate=0)
    array = matrix()
    kept = array.copy()
    expected = f(tp.asarray(array)).numpy()
    for _ in range(2):
        np.testing.assert_array_equal(f(tp.asarray(array, copy=False)).numpy(), expected)
        np.testing.assert_array_equal(array, kept)


def test_an_argument_that_is_passed_twice_stays_until_its_last_use() -> None:
    f = tp.compile(lambda x, y: (tp.exp(x) * 2 + x, tp.sort(y)), donate=(0, 1))
    x = tp.asarray(matrix())
    array = x.numpy().copy()
    for _ in range(2):
        x = tp.asarray(array)
        first, second = f(x, x)
        np.testing.assert_allclose(first.numpy(), np.exp(array) * 2 + array, 1e-5, 1e-6)
        np.testing.assert_array_equal(second.numpy(), np.sort(array))


# Random programs ------------------------------------------------------------------------

UNARY: list[Callable[[Any], Any]] = [
    lambda x: tp.tanh(x) * 2 + 1,
    lambda x: tp.abs(x) - x * 0.5,
    tp.sort,
    lambda x: tp.matrix_transpose(tp.matrix_transpose(x)),
    lambda x: tp.reshape(tp.reshape(x, (-1,)), (SIDE, SIDE)),
    lambda x: x[:],
    lambda x: x - tp.mean(x, axis=1, keepdims=True),
    lambda x: tp.flip(x, axis=0),
]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x * y + 0.5,
    lambda x, y: tp.maximum(x, y) - tp.minimum(x, y) * 0.25,
    lambda x, y: tp.where(x < y, x, y * 0.5),
]

Instruction = tuple[int, int, int]


COUNT = len(UNARY) + len(BINARY)


def interpret(program: Sequence[Instruction], wanted: Sequence[int]) -> Callable[..., Any]:
    """Return a function of two matrices: each instruction adds a value made of earlier ones."""

    def f(x: Any, y: Any) -> Any:
        values = [x, y]
        for number, a, b in program:
            first, second = values[a % len(values)], values[b % len(values)]
            values.append(
                UNARY[number](first)
                if number < len(UNARY)
                else BINARY[number - len(UNARY)](first, second)
            )
        return [values[at % len(values)] for at in wanted] + values[-1:]

    return f


NUMBERS = st.integers(0, 30)
INSTRUCTIONS = st.tuples(st.integers(0, COUNT - 1), NUMBERS, NUMBERS)


@settings(max_examples=60, deadline=None)
@given(
    program=st.lists(INSTRUCTIONS, min_size=2, max_size=12),
    wanted=st.lists(NUMBERS, max_size=3),
    donate=st.sampled_from([(), (0,), (1,), (0, 1)]),
    held=st.sampled_from([(), (0,), (1,), (0, 1)]),
    same=st.booleans(),
)
def test_random_programs(
    program: list[Instruction],
    wanted: list[int],
    donate: tuple[int, ...],
    held: tuple[int, ...],
    same: bool,
) -> None:
    f = interpret(program, wanted)
    arrays = [matrix(), matrix()]

    def tensors() -> list[Any]:
        actual = [tp.asarray(array) for array in arrays]
        return [actual[0], actual[0]] if same else actual

    with tp.use_backend("cpu"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reuse, "LEAST", 1 << 60)
            plain = tp.compile(f)
            plain(*tensors())
            expected = [each.numpy().copy() for each in plain(*tensors())]
        fast = tp.compile(f, donate=donate)
        earlier: list[Any] = []
        for _ in range(3):
            given_ = tensors()
            views = [tp.reshape(given_[at], (-1,)) for at in held]
            before = [view.numpy().copy() for view in views]
            results = fast(*given_)
            for result, right in zip([*results, *earlier], [*expected, *expected], strict=False):
                np.testing.assert_array_equal(result.numpy(), right)
            for view, right in zip(views, before, strict=True):
                np.testing.assert_array_equal(view.numpy(), right)
            for at, (tensor, array) in enumerate(zip(given_, arrays, strict=True)):
                if not tensor.is_disposed and not same:
                    assert at not in donate
                    np.testing.assert_array_equal(tensor.numpy(), array)
            earlier = results
