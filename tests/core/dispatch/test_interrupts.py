"""Ctrl-C at every point of a program: locks are free, contexts as before, memory freed."""

from __future__ import annotations

import contextvars
import functools
import gc
import io
import itertools
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.core.support import engines
from tests.core.support.interrupts import count_points, interrupt, interruptible

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.locks import all_locks
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug.engine.engine import Engine

FEW = 40  # points of each program that every run of the tests tries
SECONDS = 10  # for a program in another thread, which would wait for a lock that is held


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run on the installed CPU backend, in an engine and a folder of its own."""
    monkeypatch.chdir(tmp_path)
    with isolated_engine(), interruptible():
        tp.set_backend("cpu")
        yield


def numbers(*values: float) -> tp.Tensor:
    return tp.asarray(values, dtype="float32")


def run_ops() -> Any:
    x = numbers(1, 2, 3)
    return [tp.sum(x * x + 1).item(), (x @ x).item(), (-x).tolist()]


SIZES = itertools.count(1)


def run_new_plan() -> Any:
    return tp.sum(tp.ones((next(SIZES), 2)) * 0).item()


def run_tidy() -> Any:
    kept = tp.tidy(lambda x: tp.sum(tp.exp(x)), numbers(0, 0))
    with tp.tidy():
        inner = kept + 1
        with tp.tidy():
            outcome = (inner * 2).item()
    return [kept.item(), outcome, inner.is_disposed]


def run_grad() -> Any:
    def cube(x: tp.Tensor) -> tp.Tensor:
        return tp.sum(x**3)

    first = tp.grad(cube)(numbers(1, 2))
    second = tp.grad(lambda x: tp.sum(tp.grad(cube)(x)))(numbers(1, 2))
    return [first.tolist(), second.tolist()]


def run_use_backend() -> Any:
    with tp.use_backend("cpu") as name:
        inside = tp.get_backend()
        with tp.use_backend("cpu"):
            total = tp.sum(numbers(1, 2)).item()
    return [name, inside, total]


def run_debug() -> Any:
    with tp.debug(leaks=True):
        return tp.exp(numbers(0)).tolist()


def run_profile() -> Any:
    with tp.profile() as profile:
        tp.exp(numbers(0))
    return [profile.kernel_names, profile.result]


def run_trace() -> Any:
    file = io.StringIO()
    with tp.trace_dispatch(file) as trace:
        tp.exp(numbers(0))
    return [call.name for call in trace.calls]


def run_compiled() -> Any:
    return tp.compile(lambda x: tp.sum(x * 2 + 1))(numbers(1, 2)).item()


def run_set_backend() -> Any:
    tp.set_backend("cpu")
    return tp.sum(numbers(1, 2)).item()


@functools.cache
def plain_engine() -> Engine:
    return engines.make(("memory", "other"))


def run_remove_backend() -> Any:
    with engines.using(plain_engine()):
        with tp.use_backend("other"):
            x = numbers(1, 2)
        tp.remove_backend("other")
        return [x.tolist(), x.device, tp.get_backend()]


def run_remove_installed() -> Any:
    x = numbers(1, 2)
    tp.remove_backend("cpu")
    with tp.use_backend("cpu"):
        return [x.tolist(), (x + 1).tolist()]


def run_dispose() -> Any:
    x = numbers(1, 2)
    total = tp.sum(x).item()
    tp.dispose([x, {"y": numbers(3)}])
    return [total, x.is_disposed]


def run_save_and_load() -> Any:
    path = Path("saved.safetensors")
    tp.save({"a": numbers(1, 2), "b": {"c": numbers(3)}}, path)
    loaded = tp.load(path)
    return [loaded["a"].tolist(), loaded["b"]["c"].tolist(), sorted(map(str, Path().iterdir()))]


GENERATOR = tp.random.Generator(7)


def run_random() -> Any:
    drawn = tp.random.uniform(GENERATOR.key(), (3,))
    own = tp.random.Generator(7)
    own.state = own.state
    return [drawn.shape, tp.random.uniform(own.key(), (2,)).tolist()]


def run_variables() -> Any:
    variable = tp.Variable(numbers(1, 2))
    variable.assign(variable + 1)
    grads = tp.variable_grads(lambda: tp.sum(variable * variable), [variable]).grads
    return [variable.tolist(), [grad.tolist() for grad in grads.values()]]


def run_large_results() -> Any:
    x = tp.ones((1 << 18,))
    return tp.sum(x + x).item()


PROGRAMS: list[Callable[[], Any]] = [
    run_ops,
    run_new_plan,
    run_tidy,
    run_grad,
    run_use_backend,
    run_debug,
    run_profile,
    run_trace,
    run_compiled,
    run_set_backend,
    run_remove_backend,
    run_dispose,
    run_save_and_load,
    run_random,
    run_variables,
    run_large_results,
]
MANY: list[Callable[[], Any]] = [run_remove_installed]  # loading plugins has 300,000 points


MANY_POINTS = 300
NAMES = [program.__name__.removeprefix("run_") for program in PROGRAMS]


def in_another_thread(program: Callable[[], Any]) -> Any:
    """Return the program's result; the thread can wait for a lock, but not for ever."""
    context, results = contextvars.copy_context(), []
    thread = threading.Thread(target=lambda: results.append(context.run(program)), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "a lock is still held"
    return results[0]


def used() -> tuple[int, int]:
    gc.collect()
    memory = tp.memory()
    return memory.tensors, memory.bytes


def check_points(program: Callable[[], Any], points: Iterable[int]) -> None:
    """Interrupt the program at each of ``points``, until it has no more."""
    expected = program()
    context, collecting, before = current_context(), gc.isenabled(), used()
    for point in points:
        arrived, raised = interrupt(program, point)
        assert current_context() is context, point
        assert gc.isenabled() is collecting, point
        assert not any(lock._is_owned() for lock in all_locks()), point
        assert in_another_thread(program) == expected, point
        assert raised or not arrived, f"point {point}: the interrupt was lost"
        if not arrived:
            break
    assert program() == expected
    assert used() == before


def sample(program: Callable[[], Any], size: int) -> list[int]:
    """Return the numbers of that many points of the program; of all, if it has fewer."""
    program()
    count = count_points(program)
    return Random(count).sample(range(1, count + 1), min(size, count))


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_an_interrupt_at_some_points(program: Callable[[], Any]) -> None:
    check_points(program, sample(program, FEW))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_an_interrupt_at_many_points(program: Callable[[], Any]) -> None:
    """``check_points(program, itertools.count(1))`` tries all of them, for up to ten minutes."""
    check_points(program, sample(program, MANY_POINTS))


@pytest.mark.slow
@pytest.mark.parametrize("program", MANY)
def test_an_interrupt_at_some_of_many_points(program: Callable[[], Any]) -> None:
    check_points(program, sample(program, FEW))
