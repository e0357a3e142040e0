"""What a program shows of its groups, and what an explanation says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.compile.test_fusion import COLUMNS, ROW, ROWS, TWO_STEPS, Compiled, X

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import Context, use_context

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def compiled() -> Compiled:
    return Compiled()


def shown(compiled: Compiled, f: Callable[..., Any], *arrays: Any) -> list[str]:
    """Return the lines of a program's text, without the lines of the source."""
    with use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)):
        program = tp.compile(f).program(*[tp.asarray(array) for array in arrays])
    return [line.split("  # ")[0].strip() for line in repr(program).splitlines()]


def test_a_program_shows_its_groups(compiled: Compiled) -> None:
    lines = shown(compiled, lambda x, row: tp.sum(tp.sort(tp.exp(x) * row) + x), X, ROW)
    assert lines[0] == "<Program on cpu: 5 calls, 2 groups>"
    assert [line.split(", ")[-1] for line in lines if " = " in line] == [
        "in group 1",
        "in group 1",
        "alone: neither elementwise nor a reduction",
        "in group 2",
        "in group 2",
    ]
    assert lines[-3:] == [
        "group 1: Exp+Multiply of %0, %1 -> %3, by cpu over 6 x 5",
        "group 2: Add+Sum of %4, %0 -> %6, by cpu over 30",
        "return %6",
    ]


ALONE: list[Any] = [
    (tp.sort, lambda _: True, "neither elementwise nor a reduction"),
    (lambda x: tp.exp(x) * 2, lambda _: False, "declined by the backend"),
    (lambda x: tp.exp(x) * 2, lambda _: "no room", "declined by the backend: no room"),
    (lambda x: tp.exp(x[:2, :2]), lambda _: True, "few calls on fewer than 12 elements"),
    (lambda x: tp.reshape(x, (ROWS, 1, COLUMNS)), lambda _: True, "moves no elements"),
    (tp.sum, lambda _: True, "one pass as it is"),
]


@pytest.mark.parametrize(("f", "takes", "reason"), ALONE)
def test_a_program_shows_why_a_call_is_alone(
    compiled: Compiled, f: Any, takes: Any, reason: str
) -> None:
    compiled.takes = takes
    lines = shown(compiled, f, X)
    assert lines[0].endswith("0 groups>")
    assert [line for line in lines if " = " in line][-1].endswith(f", alone: {reason}")


def test_a_program_shows_why_a_group_runs_in_parts(compiled: Compiled) -> None:
    compiled.takes = lambda group: "no reductions" if group.reductions else True
    lines = shown(compiled, lambda x: tp.sum(tp.exp(x) * x), X)
    assert lines[0] == "<Program on cpu: 3 calls, 1 group>"
    assert lines[-3:] == [
        "group 1: Exp+Multiply of %0 -> %2, by cpu over 30",
        "Exp+Multiply+Sum: declined by the backend: no reductions",
        "return %3",
    ]


def _exp(x):
    return np.exp(x)


def test_a_kernel_of_somebody_else_is_alone(compiled: Compiled) -> None:
    with use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)):
        program = tp.compile(lambda x: tp.exp(x) * 2).program
        with tp.register_kernel("Exp", "cpu", _exp, override=True):
            text = repr(program(tp.asarray(X)))
    assert "alone: a kernel of " in text


def test_a_group_shows_which_memory_it_overwrites() -> None:
    with tp.use_backend("cpu"):
        x = tp.zeros((256, 256))
        text = repr(tp.compile(lambda x: tp.tanh(tp.sort(x) - 1) * 3).program(x))
    assert "group 1: Sub+Tanh+Multiply of %1 -> %6, by cpu over 65536, %6 in the memory of %1" in (
        text
    )


@pytest.mark.parametrize(
    ("spec", "attributes", "takes", "step"),
    [
        ("Softmax", {"dim": 1}, True, "Softmax, by cpu"),
        ("Softmax", {"dim": 1}, False, "none: declined by the backend"),
        ("Softmax", {"dim": 1}, "no loops", "none: declined by the backend: no loops"),
        ("Exp", {}, True, "none: one pass as it is"),
        ("Sort", {}, True, "none: neither elementwise nor a reduction"),
        (TWO_STEPS, {}, True, "TwoSteps, by cpu"),
    ],
)
def test_an_explanation_names_the_groups(
    compiled: Compiled, spec: Any, attributes: Any, takes: bool | str, step: str
) -> None:
    compiled.takes = lambda _: takes
    with (
        use_context(Context(compiled.engine, compiled.engine.open("cpu"), None)),
        tp.register_decomposition(TWO_STEPS, lambda x: tp.exp(x) + x),
    ):
        large = tp.explain(spec, [TensorType(dt.float32, (6, 5))], attributes)
        small = tp.explain(spec, [TensorType(dt.float32, (2, 3))], attributes)
    assert large.steps == (*small.steps, ("group", step))
