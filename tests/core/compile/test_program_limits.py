"""How many programs a device keeps, and that the others leave no memory behind."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.backward import programs as backward
from tensorplug.compile.programs.executable import Executable
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch import device as device_module
from tensorplug.dispatch.calls import dispatch
from tensorplug.engine.current import current_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = 16
SPEC = KernelSpec("LimitedSteps", ("x",), inference.same)


@pytest.fixture(autouse=True)
def _few_are_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TENSORPLUG_CPU_JIT", "0")  # compiling thousands of kernels takes minutes
    monkeypatch.setattr(device_module, "PROGRAM_LIMIT", LIMIT)
    monkeypatch.setattr(backward, "KEPT", LIMIT)
    monkeypatch.setattr(device_module, "PLAN_LIMIT", 256)
    with (
        tp.use_backend("cpu"),
        tp.register_decomposition(SPEC, lambda x: tp.tanh(x * 2) - x),
        tp.register_gradient(SPEC, "x", lambda dy, x: dy * x),
    ):
        yield


def decomposed(length: int) -> None:
    """Call a decomposition twice: the second call runs a program."""
    for _ in range(2):
        dispatch(SPEC, tp.asarray(np.ones(length, np.float32)))


def grouped(length: int) -> None:
    """Make a large call, which is a group."""
    tp.nn.softmax(tp.asarray(np.ones((1 << 14) + length, np.float32)))


def differentiated(length: int) -> None:
    """Take a gradient twice: the second backward pass is a program."""
    for _ in range(2):
        tp.grad(lambda x: tp.sum(tp.tanh(x) * x))(tp.asarray(np.ones(length, np.float32)))


def compiled(length: int) -> None:
    """Compile a function, run it, and forget it."""
    tp.compile(lambda x: tp.sort(x * length) + 1)(tp.asarray(np.ones(8, np.float32)))


KINDS: list[Callable[[int], None]] = [decomposed, grouped, differentiated, compiled]


def programs() -> int:
    gc.collect()
    return sum(isinstance(each, Executable) for each in gc.get_objects())


@pytest.mark.parametrize("kind", KINDS)
def test_few_programs_are_kept(kind: Callable[[int], None]) -> None:
    device: Any = current_engine().devices.active
    before = programs()
    for length in range(1, 5 * LIMIT):
        kind(length)
        assert len(device.compiled) <= LIMIT
        assert len(device.programs) <= LIMIT
    assert programs() - before <= 2 * LIMIT  # `recent` keeps some that `programs` has forgotten


@pytest.mark.parametrize("kind", [decomposed, grouped])
def test_what_is_used_is_kept(kind: Callable[[int], None]) -> None:
    device: Any = current_engine().devices.active
    kind(1)
    (key,) = device.compiled
    plan = device.compiled[key]
    for length in range(2, 5 * LIMIT):
        kind(length)
        kind(1)
    assert device.compiled[key] is plan
    for length in range(2, 5 * LIMIT):
        kind(length)
    assert key not in device.compiled
    assert key not in device.plans
    assert key not in device.slow_plans


def test_backward_passes_that_are_used_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "PLAN_LIMIT", 1 << 13)  # a tape is known by its plans
    device: Any = current_engine().devices.active
    differentiated(1)
    (key,) = device.programs
    known = device.programs[key]
    for length in range(2, 5 * LIMIT):
        differentiated(length)
        differentiated(1)
    assert device.programs[key] is known


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_programs_take_no_more_memory_than_hundreds(
    kind: Callable[[int], None],
) -> None:
    sizes = []
    tracemalloc.start()
    try:
        for first, end in ((1, 400), (400, 2000)):
            for length in range(first, end):
                kind(length)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 1 << 18
