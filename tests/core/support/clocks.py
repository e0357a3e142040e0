"""Time that passes only when a kernel or a device says so, so that profiles can be exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tests.core.support import engines

import tensorplug as tp
from tensorplug.contract.tables import KernelTable
from tensorplug.observers import profiler, timing
from tensorplug.ops.elementwise import arithmetic, unary

if TYPE_CHECKING:
    import pytest

    from tensorplug.engine.engine import Engine

MS = 1_000_000  # nanoseconds


class Clock:
    """A clock, and a device that works asynchronously.

    ``now`` is in nanoseconds. ``pending`` is the work that was submitted and not waited for.
    """

    def __init__(self) -> None:
        self.now = 100 * MS
        self.pending = 0

    def __call__(self) -> int:
        return self.now

    def submit(self, milliseconds: int) -> None:
        """Hand the device work; handing it over takes a hundredth of a millisecond."""
        self.now += MS // 100
        self.pending += milliseconds * MS - MS // 100

    def wait(self) -> None:
        """Wait until the device has done everything."""
        self.now += self.pending
        self.pending = 0


def kernels(clock: Clock) -> KernelTable:
    """Return asynchronous kernels: Multiply of 5 ms, Exp of 20 ms, Neg of 1 ms."""
    table = KernelTable()

    @table.register(arithmetic.MULTIPLY)
    def multiply(a, b):
        clock.submit(5)
        return np.asarray(np.multiply(a, b))

    @table.register(unary.EXP)
    def exp(x):
        clock.submit(20)
        return np.asarray(np.exp(x))

    @table.register(unary.NEG)
    def negative(x):
        clock.submit(1)
        return np.asarray(np.negative(x))

    return table


def engine(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return an engine with these kernels, and let profiles read this clock."""
    made = engines.make({"memory": [kernels(clock)]})
    made.open("memory").backend.synchronize = clock.wait
    monkeypatch.setattr(timing, "perf_counter_ns", clock)
    monkeypatch.setattr(profiler, "perf_counter_ns", clock)
    return made


def profile_of_four_calls(clock: Clock) -> Any:
    """Return a profile of four calls on this clock's engine, two of them inside another."""

    def decomposed(x: Any) -> Any:
        clock.now += 10 * MS
        return tp.exp(x) * x

    spec = engines.spec_of("Detour")
    with tp.register_decomposition(spec, decomposed), tp.profile() as profile:
        x = tp.asarray([[1.0, 2.0, 3.0]])
        tp.run_kernel(spec, [x])  # the first call
        tp.negative(tp.negative(x))
    return profile
