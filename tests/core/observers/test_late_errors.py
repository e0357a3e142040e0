"""Errors of a device that computes later: where they are raised, and what they name."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import using

import tensorplug as tp
from tensorplug.contract.tables import KernelTable
from tensorplug.errors import (
    BackendClosedError,
    BackendMemoryError,
    BackendWarning,
    DeviceError,
    DeviceFaultError,
    DeviceLostError,
    DeviceTimeoutError,
)
from tensorplug.plugin import specs
from tensorplug.testing import isolated_engine


class Queue(engines.MemoryBackend):
    """Tells that a kernel failed when a result is read, or when the device is waited for.

    ``stuck``: it answers only when that is set. ``closing``: so does ``close``.
    """

    pending: list[DeviceError]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pending = []
        self.stuck: threading.Event | None = None

    def _tell(self) -> None:
        if self.stuck:
            self.stuck.wait()
        if self.pending:
            raise self.pending.pop()

    def to_host(self, buffer: np.ndarray) -> np.ndarray:
        self._tell()
        return super().to_host(buffer)

    def synchronize(self) -> None:
        super().synchronize()
        self._tell()


def engine(error: type[DeviceError] = DeviceFaultError) -> Any:
    table = KernelTable()

    @table.register(specs.SQRT, override=True)
    def fails(x: np.ndarray, *, backend: Queue) -> np.ndarray:
        backend.pending.append(error("page fault at 0x10", op="Sqrt"))
        return np.array(x)

    @table.register(specs.SIN, override=True)
    def tells(x: np.ndarray, *, backend: Queue) -> np.ndarray:
        backend._tell()
        return np.sin(x)

    kernels = [engines.basic_kernels(), table]
    return engines.make({"memory": kernels}, kinds={"memory": Queue})


@pytest.mark.parametrize(
    ("wait", "when"),
    [
        (lambda y: y.numpy(), "float32[2] was read on 'memory'"),
        (lambda y: y.tolist(), "float32[2] was read on 'memory'"),
        (lambda _y: tp.synchronize(), "synchronize waited on 'memory'"),
    ],
)
def test_an_error_that_comes_late_says_how_to_find_its_call(wait: Any, when: str) -> None:
    with using(engine()):
        y = tp.sqrt(tp.asarray([1.0, 4.0]))
        with pytest.raises(DeviceFaultError, match="page fault") as caught:
            wait(y)
    (note,) = caught.value.__notes__
    assert when in note
    assert "tensorplug.debug()" in note


@tp.compile
def choose(which: Any, x: Any) -> Any:
    return tp.cond(which, lambda x: x + x, lambda x: x * x, x)


KINDS = (DeviceFaultError, BackendMemoryError, DeviceLostError, DeviceTimeoutError)
# What a program does with the result of an op that fails later, and with x.
WAITS: dict[str, Any] = {
    "numpy": lambda y, _x: y.numpy(),
    "np.asarray": lambda y, _x: np.asarray(y),
    "synchronize": lambda _y, _x: tp.synchronize(),
    "the next call": lambda _y, x: tp.sin(x),
    "another device": lambda y, _x: y.to("host"),
    "a branch": lambda y, x: choose(y.sum().astype(bool), x),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_late_error_says_where_it_comes_from(
    kind: type[DeviceError], wait: str, compiled: bool
) -> None:
    with using(engine(kind)):
        x = tp.asarray([1.0, 4.0])
        function = (lambda x: tp.sqrt(x + x) + x) if compiled else tp.sqrt
        y = (tp.compile(function) if compiled else function)(x)
        with pytest.raises(kind, match="page fault") as caught:
            WAITS[wait](y, x)
        error = caught.value
        assert (error.op, error.backend, error.device) == ("Sqrt", "memory", "memory")
        assert "tensorplug.debug()" in "".join(error.__notes__)
        tp.synchronize()  # told once


def test_an_error_at_its_own_call_is_that_of_the_call() -> None:
    with using(engine()) as context:
        x = tp.asarray([1.0])
        backend = context.engine.open("memory").backend
        backend.pending.append(DeviceFaultError("no power"))
        with pytest.raises(DeviceFaultError, match="no power") as caught:
            tp.sin(x)
    assert (caught.value.op, caught.value.device) == ("Sin", "memory")
    assert "debug" not in "".join(caught.value.__notes__)


@pytest.mark.parametrize("wait", ["numpy", "synchronize"])
@pytest.mark.parametrize("closes", [True, False])
def test_a_device_that_does_not_answer_is_given_up(wait: str, closes: bool) -> None:
    made = engine()
    made.devices.wait_limit = 0.05
    with using(made):
        x = tp.asarray([1.0, 2.0])
        first: Any = made.open("memory").backend
        assert (x + x).tolist() == [2.0, 4.0]
        first.stuck = stuck = threading.Event()
        first.close = first.close if closes else stuck.wait
        try:
            with pytest.raises(DeviceTimeoutError, match=r"did not \w+ within 0.05 s") as caught:
                WAITS[wait](x, x)
            assert (caught.value.backend, caught.value.device) == ("memory", "memory")
            stays = threading.active_count()
            for again in (lambda: x + x, x.numpy, tp.synchronize):
                with pytest.raises(DeviceTimeoutError):
                    again()
            assert threading.active_count() == stays  # it was not asked again
            with pytest.warns(BackendWarning) as warned:
                tp.set_backend("memory")
            assert any("closing it raised" in str(each.message) for each in warned) is not closes
            assert made.open("memory").backend is not first
            assert (tp.asarray([3.0]) + 1).tolist() == [4.0]
            with pytest.raises(BackendClosedError, match="was lost"):
                x.numpy()
        finally:
            stuck.set()


def test_a_limit_changes_no_errors() -> None:
    made = engine()
    made.devices.wait_limit = 60.0
    with using(made):
        y = tp.sqrt(tp.asarray([1.0, 4.0]))
        with pytest.raises(DeviceFaultError, match="page fault"):
            y.numpy()
        assert y.tolist() == [1.0, 4.0]


def lose(made: Any) -> None:
    """Pretend that the open device of this name has told its loss."""
    made.open("cpu").backend.explain_loss = lambda: "a fuse blew"
    device = made.open("cpu")
    object.__setattr__(device.capabilities, "explain_loss", device.backend.explain_loss)


@pytest.mark.parametrize("block", ["isolated_engine", "use_backend"])
def test_set_backend_opens_a_lost_device_anew_in_a_block(block: str) -> None:
    with isolated_engine("cpu") as made:
        inside = tp.use_backend("cpu") if block == "use_backend" else made.devices._lock
        with inside:
            x = tp.asarray([1.0])
            lose(made)
            tp.set_backend("cpu")
            assert (tp.asarray([1.0]) + 1).tolist() == [2.0]
            assert (x + 1).tolist() == [2.0]  # here, it could be read back


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("options", [{}, {"nan": False, "inf": False}])
def test_debug_mode_names_the_call(options: dict[str, bool], compiled: bool) -> None:
    def function(x: Any) -> Any:
        return tp.sqrt(x) + x

    root = tp.compile(function) if compiled else function
    with using(engine()), tp.debug(**options):
        x = tp.asarray([1.0, 4.0])
        with pytest.raises(DeviceFaultError, match="page fault") as caught:
            root(x)
        x + x  # the device goes on
    notes = "\n".join(caught.value.__notes__)
    assert "in Sqrt(x=float32[2]) -> float32[2], native by memory-distribution 2.0" in notes
    assert "test_late_errors.py" in notes
    assert "tp.sqrt(x)" in notes
    assert "in tensorplug.debug()" not in notes
