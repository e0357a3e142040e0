"""compile: a program runs on its own device, whatever the active one becomes meanwhile."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import together, using
from tests.core.support.tensors import tensor

import tensorplug as tp
from tensorplug.contract.tables import KernelTable
from tensorplug.errors import KernelNotFoundError, KernelRefusedError
from tensorplug.ops.elementwise.unary import EXP
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.engine.engine import Engine

A = np.array([1.0, -2.0], np.float32)
B = np.array([3.0, 0.5], np.float32)


@pytest.fixture
def shared() -> Iterator[Engine]:
    """Yield an engine for several threads. The buffers of "cpu" and "minimal" differ."""
    with isolated_engine() as engine:
        tp.set_backend("cpu")
        yield engine


class _Switch:
    """A static argument that makes another backend the active one when the signature is built."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __hash__(self) -> int:
        tp.set_backend(self.backend)
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Switch)


@pytest.mark.usefixtures("shared")
def test_the_active_backend_changes_after_the_program_was_chosen() -> None:
    with tp.use_backend("minimal"):
        y = tensor(B)
    x = tensor(A)
    held = tp.Variable(y)
    compiled = tp.compile(lambda x, y, _: x * y + held)
    expected = A * B + B
    for _ in range(2):
        tp.set_backend("cpu")
        result = compiled(x, y, _Switch("minimal"))
        assert tp.get_backend() == "minimal"
        assert result.device == "cpu"
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.usefixtures("shared")
def test_a_gradient_while_the_active_backend_changes() -> None:
    with tp.use_backend("minimal"):
        y = tensor(B)
    x = tensor(A)
    compiled = tp.compile(lambda x, y, _: tp.sum(x * y))
    for _ in range(2):
        tp.set_backend("cpu")
        gradient = tp.grad(lambda x: compiled(x, y, _Switch("minimal")))(x)
        np.testing.assert_array_equal(gradient.numpy(), B)


def test_threads_call_while_another_switches_backends(shared: Engine) -> None:
    x = tensor(A)
    with tp.use_backend("minimal"):
        y = tensor(B)
    compiled = tp.compile(lambda x, y: x * y + x)
    for backend in ("cpu", "minimal"):
        with tp.use_backend(backend):
            compiled(x, y)
    done = threading.Event()
    count = 4

    def work(number: int) -> None:
        with using(shared):
            if number == count:
                while not done.is_set():
                    tp.set_backend("cpu")
                    tp.set_backend("minimal")
                return
            try:
                for _ in range(400):
                    np.testing.assert_array_equal(compiled(x, y).numpy(), A * B + A)
            finally:
                done.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        together(count + 1, work)
    finally:
        sys.setswitchinterval(before)


def test_a_move_to_another_device_is_named(shared: Engine) -> None:
    moved = tp.compile(lambda x: x.to("minimal") * 2)
    with pytest.raises(tp.errors.DeviceMismatchError, match=r"'cpu' uses .* on 'minimal'"):
        moved(tp.asarray(A, device="cpu"))
    with pytest.raises(tp.errors.DataNeededError, match=r"to\('host'\): a compiled function"):
        tp.compile(lambda x: x.to("host"))(tp.asarray(A))
    assert tp.compile(lambda x: x.to("cpu") * 2)(tp.asarray(A)).tolist() == [2.0, -4.0]


@pytest.mark.parametrize("fallback", ["allow", "error"])
def test_a_kernel_that_a_trace_leaves_unprepared_may_decline(fallback: str) -> None:
    home = KernelTable()

    @home.prepare(EXP)
    def decline(x: object) -> None:
        raise KernelRefusedError("too narrow")

    away = engines.basic_kernels()
    engine = engines.make({"home": [home], "away": [away]}, fallback=fallback)
    compiles = {"compile_group": lambda _: None, "functions": frozenset(), "least_group": 1}
    engine.devices.source.offers["home"] = compiles
    with using(engine):
        f = tp.compile(tp.exp)
        if fallback == "error":
            with pytest.raises(KernelNotFoundError, match=r"too narrow; .* not allowed"):
                f(tp.asarray(A))
            return
        for _ in range(2):
            np.testing.assert_allclose(f(tp.asarray(A)).numpy(), np.exp(A), rtol=1e-6)
        assert tp.memory()["home"].fallbacks == {"Exp": 2}
