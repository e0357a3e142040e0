"""Decompositions as programs: traced once for a plan, run on buffers, and given up where unfit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.engines import expect, make, spec_of, together, using

import tensorplug as tp
from tensorplug.contract.spec import KernelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.engine.engine import Engine

ODD = spec_of("Odd")
PAIR = KernelSpec("Pair", ("x",), lambda x: (x, x), outputs=("first", "second"))


@pytest.fixture
def home() -> Iterator[Engine]:
    """Yield an engine without fallback, whose one backend has a few kernels."""
    engine = make()
    with using(engine):
        yield engine


def counted(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    """Return the function, and a list that grows when its Python code runs."""
    runs: list[int] = []

    def decomposed(x: tp.Tensor) -> Any:
        runs.append(1)
        return function(x)

    return decomposed, runs


def programs(engine: Engine) -> list[Any]:
    return [plan for plan in engine.devices.active.plans.values() if plan.source is not None]


BECOME: dict[str, tuple[Callable[[Any], Any], Any]] = {  # decomposition, result for [1, 2]
    "kernels": (lambda x: x * 2.0 + x, [3, 6]),
    "nothing": (lambda x: x, [1, 2]),
    "a small array": (lambda x: x + tp.asarray([10.0, 20.0]), [11, 22]),
    "kernels without inputs": (lambda x: x + tp.ones((2,)), [2, 3]),
    "kernels whose results nobody uses": (lambda x: (tp.exp(x), -x)[1], [-1, -2]),
    "the same call twice": (lambda x: (x * 3.0) + (x * 3.0), [6, 12]),
}


@pytest.mark.parametrize("what", BECOME)
def test_the_python_code_runs_once_and_is_traced_once(home: Engine, what: str) -> None:
    function, expected = BECOME[what]
    decomposed, runs = counted(function)
    with tp.register_decomposition(ODD, decomposed), tp.register_gradient(ODD, "x", rule):
        x = tp.asarray([1.0, 2.0])
        for _ in range(5):
            expect(tp.run_kernel(ODD, [x]), "float32", (2,), expected)
        assert len(runs) == 2
        (plan,) = programs(home)
        assert (plan.how, str(plan.owner)) == ("decomposed", "the running program")


def rule(dy: tp.Tensor) -> tp.Tensor:
    return dy * 100.0


def reading(x: tp.Tensor) -> tp.Tensor:
    return -x if x.numpy().sum() > 0 else x


VARIABLE: list[tp.Variable] = []
LARGE = np.full((2000,), 3.0, np.float32)
REMAIN: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "it reads data": (reading, [-1, -2]),
    "it reads a variable": (lambda x: x + VARIABLE[0], [11, 12]),
    "it holds much data": (lambda x: x + tp.sum(tp.asarray(LARGE)), [6001, 6002]),
}


@pytest.mark.parametrize("what", REMAIN)
def test_what_is_no_program_runs_as_python_code(home: Engine, what: str) -> None:
    function, expected = REMAIN[what]
    VARIABLE[:] = [tp.Variable(tp.asarray([10.0]))]
    decomposed, runs = counted(function)
    with tp.register_decomposition(ODD, decomposed), tp.register_gradient(ODD, "x", rule):
        x = tp.asarray([1.0, 2.0])
        for _ in range(5):
            expect(tp.run_kernel(ODD, [x]), "float32", (2,), expected)
        assert len(runs) == 6  # the trace fails once; that is remembered
        assert programs(home) == []
        if what == "it reads data":  # the other branch, for the same types
            expect(tp.run_kernel(ODD, [-x]), "float32", (2,), [-1, -2])


@pytest.mark.parametrize("ruled", [False, True])
def test_gradients_by_rules_and_through_the_calls(home: Engine, ruled: bool) -> None:
    x = tp.asarray([1.0, 2.0])
    with tp.register_decomposition(ODD, lambda x: x * 3.0):
        handle = tp.register_gradient(ODD, "x", rule) if ruled else None
        for _ in range(4):
            expect(tp.run_kernel(ODD, [x]), "float32", (2,), [3, 6])
            gradient = tp.grad(lambda x: tp.sum(tp.run_kernel(ODD, [x])))(x)
            expect(gradient, "float32", (2,), [100, 100] if ruled else [3, 3])
        assert len(programs(home)) == ruled  # else no call may pass the tape by
        if handle is not None:
            handle.remove()


def test_multiple_outputs(home: Engine) -> None:
    x = tp.asarray([1.0, 2.0])
    with tp.register_decomposition(PAIR, lambda x: [x * 2.0, -x]):
        for _ in range(4):
            first, second = tp.run_kernel(PAIR, [x])
            expect(first, "float32", (2,), [2, 4])
            expect(second, "float32", (2,), [-1, -2])


@pytest.mark.usefixtures("home")
def test_observers_see_the_kernels() -> None:
    x = tp.asarray([1.0, 2.0])
    with tp.register_decomposition(ODD, lambda x: -(x * 3.0)):
        for _ in range(3):
            tp.run_kernel(ODD, [x])
        with tp.profile() as p:
            expect(tp.run_kernel(ODD, [x]), "float32", (2,), [-3, -6])
    assert [(kernel.name, kernel.how) for kernel in p.kernels] == [
        ("Multiply", "native"),
        ("Neg", "native"),
        ("Odd", "decomposed"),
    ]


@pytest.mark.usefixtures("home")
def test_a_change_of_the_registry_is_followed() -> None:
    x = tp.asarray([1.0])
    with tp.register_decomposition(ODD, lambda x: -x):
        for _ in range(3):
            expect(tp.run_kernel(ODD, [x]), "float32", (1,), [-1])
        with tp.register_kernel("Neg", "memory", lambda x: x * 100, override=True):
            for _ in range(3):
                expect(tp.run_kernel(ODD, [x]), "float32", (1,), [100])
        expect(tp.run_kernel(ODD, [x]), "float32", (1,), [-1])


@pytest.mark.usefixtures("home")
def test_an_error_names_the_kernel_that_failed() -> None:
    broken: list[int] = []

    def kernel(x: Any) -> Any:
        if broken:
            raise ZeroDivisionError("broken")
        return np.negative(x)

    x = tp.asarray([1.0])
    note = "in kernel Neg(x=float32[1]) of the running program on backend 'memory'"
    with (
        tp.register_kernel("Neg", "memory", kernel, override=True),
        tp.register_decomposition(ODD, lambda x: -(x * 3.0)),
    ):
        for _ in range(3):
            tp.run_kernel(ODD, [x])
        broken.append(1)
        with pytest.raises(ZeroDivisionError) as caught:
            tp.run_kernel(ODD, [x])
    assert caught.value.__notes__ == [note]


@pytest.mark.usefixtures("home")
def test_numbers_are_counted_as_constants() -> None:
    x = tp.asarray([1.0, 2.0])
    with tp.register_decomposition(ODD, lambda x: -(x * 3.0)):
        for _ in range(3):
            tp.run_kernel(ODD, [x])
        before = tp.memory()
        kept = tp.tidy(lambda: tp.run_kernel(ODD, [x]))
        assert tp.memory().tensors == before.tensors + 1
        assert before["memory"].constants == 1
        expect(kept, "float32", (2,), [-3, -6])


def test_threads_share_a_program(home: Engine) -> None:
    with tp.register_decomposition(ODD, lambda x: -(x * 3.0)):

        def work(number: int) -> None:
            with using(home):
                x = tp.asarray(np.full((5,), number, np.float32))
                for _ in range(50):
                    expect(tp.run_kernel(ODD, [x]), "float32", (5,), np.full((5,), -3.0 * number))

        together(8, work)
