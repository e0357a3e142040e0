"""Devices that work later, on NumPy arrays: a right one, and some whose late errors are wrong."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.errors import (
    BackendMemoryError,
    DeviceError,
    DeviceFaultError,
    DeviceLostError,
    DeviceTimeoutError,
)
from tensorplug.plugin import specs
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.checks import CheckFailedError, late_errors
from tensorplug_conformance.selftest.backends import WrappedSource
from tensorplug_conformance.selftest.delegates import Delegate
from tensorplug_conformance.selftest.trials import Trial
from tensorplug_conformance.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.engine.engine import Engine, Opened
    from tensorplug.plugin import Group


class Queue(Delegate):
    """Computes at once, and tells late: what failed is poison, as is all that depends on it."""

    def __init__(self, clean: Any) -> None:
        super().__init__(clean)
        self.injected: type[DeviceError] | None = None
        self.poison: dict[int, tuple[Any, DeviceError]] = {}  # by the identity of the buffer
        self.untold: list[DeviceError] = []
        self.cause = ""
        self.stuck: threading.Event | None = None

    def inject_fault(self, kind: type[DeviceError]) -> str:
        self.injected = kind
        return ""

    def compile_group(self, _group: Group) -> None:
        """Decline, so that programs run the kernels below."""

    def launch(self, name: str, function: Any, *inputs: Any) -> Any:
        """Return the result of a kernel, or what it would be."""
        if self.cause:
            raise DeviceLostError(self.cause, op=name)
        why = next((why for each in inputs if (why := self.poison_of(each))), None)
        kind, self.injected = self.injected, None
        if kind is DeviceTimeoutError:
            self.stuck = threading.Event()
        elif kind is not None:
            why = self.fail(kind, name)
        result = np.asarray(function(*inputs))
        if why is not None:
            self.poison[id(result)] = result, why
        return result

    def fail(self, kind: type[DeviceError], name: str) -> DeviceError:
        error = kind("it was made to fail")
        error.op = name
        self.untold.append(error)
        if kind is DeviceLostError:
            self.cause = "it was made to fail"
        return error

    def poison_of(self, buffer: Any) -> DeviceError | None:
        return self.poison.get(id(buffer), (None, None))[1]

    def wait(self) -> None:
        if self.stuck:
            self.stuck.wait()

    def to_host(self, buffer: Any) -> Any:
        self.wait()
        error = self.poison_of(buffer)
        if error is not None:
            self.untold = [each for each in self.untold if each is not error]
            raise error
        if self.cause:
            raise DeviceLostError(self.cause)
        return self.clean.to_host(buffer)

    def synchronize(self) -> None:
        self.wait()
        errors, self.untold = self.untold, []
        if errors:
            raise errors[0]

    def explain_loss(self) -> str:
        return self.cause

    def close(self) -> None:
        if self.stuck:
            self.stuck.set()
        self.clean.close()


class _TellsNobody(Queue):
    def fail(self, kind: type[DeviceError], name: str) -> Any:
        del kind, name


class _TellsTwice(Queue):
    def to_host(self, buffer: Any) -> Any:
        untold = self.untold
        try:
            return super().to_host(buffer)
        finally:
            self.untold = untold


class _TellsReadersOnly(Queue):
    def synchronize(self) -> None:
        self.wait()


class _ForgetsTheKernel(Queue):
    def fail(self, kind: type[DeviceError], name: str) -> DeviceError:
        del name
        return super().fail(kind, "")


class _RaisesTheDriversError(Queue):
    def fail(self, _kind: Any, _name: str) -> Any:
        return super().fail(RuntimeError, "")  # type: ignore[arg-type]  # that is what is wrong with it


class _PoisonsItsResultOnly(Queue):
    def launch(self, name: str, function: Any, *inputs: Any) -> Any:
        return super().launch(name, function, *map(np.array, inputs))


class _NeverRecovers(Queue):
    def fail(self, kind: type[DeviceError], name: str) -> DeviceError:
        self.cause = "the context is broken"
        return super().fail(kind, name)


class _OutlivesItsLoss(Queue):
    def launch(self, name: str, function: Any, *inputs: Any) -> Any:
        lost, self.cause = self.cause, ""
        result = super().launch(name, function, *inputs)
        self.cause = self.cause or lost
        if lost:
            result[...] = 0
        return result

    def to_host(self, buffer: Any) -> Any:
        return (
            self.clean.to_host(buffer)
            if self.poison_of(buffer) is None
            else super().to_host(buffer)
        )


class _ExplainsNoLoss(Queue):
    def explain_loss(self) -> str:
        return ""


class _AnswersAnyway(Queue):
    def wait(self) -> None:
        """Return what is in the memory, whether or not the work has ended."""


class _StaysStuck(Queue):
    """A new device waits for the old one, as those do that share a context."""

    devices: Final[list[Queue]] = []

    def __init__(self, clean: Any) -> None:
        super().__init__(clean)
        self.devices.append(self)

    def wait(self) -> None:
        for device in self.devices:
            if device.stuck:
                device.stuck.wait()

    def close(self) -> None:
        self.clean.close()


@dataclass(frozen=True, slots=True)
class WrongQueue:
    """``make`` wraps the clean backend; the check for ``kind`` must catch it by ``evidence``."""

    name: str
    make: Callable[[Any], Queue]
    kind: type[DeviceError]
    evidence: str


WRONG_QUEUES: Final[Sequence[WrongQueue]] = (
    WrongQueue("tells nobody", _TellsNobody, DeviceFaultError, "did not raise the error"),
    WrongQueue("tells twice", _TellsTwice, DeviceFaultError, "and the next synchronize raises"),
    WrongQueue("tells readers only", _TellsReadersOnly, DeviceFaultError, "synchronize did not"),
    WrongQueue("forgets the kernel", _ForgetsTheKernel, DeviceFaultError, "whose op is"),
    WrongQueue(
        "poisons one result", _PoisonsItsResultOnly, DeviceFaultError, "what depends on it gave"
    ),
    WrongQueue("raises as drivers do", _RaisesTheDriversError, BackendMemoryError, "no Backend"),
    WrongQueue("never recovers", _NeverRecovers, BackendMemoryError, "raised DeviceLostError"),
    WrongQueue("outlives its loss", _OutlivesItsLoss, DeviceLostError, "gave wrong numbers"),
    WrongQueue("explains no loss", _ExplainsNoLoss, DeviceLostError, "explain_loss does not"),
    WrongQueue("answers anyway", _AnswersAnyway, DeviceTimeoutError, "although the kernel"),
    WrongQueue("stays stuck", _StaysStuck, DeviceTimeoutError, "did not read within"),
)

_KERNELS: Final = {specs.NEG: np.negative, specs.ADD: np.add, specs.MULTIPLY: np.multiply}


def _entry(spec: Any) -> Any:
    def unary(x: Any, *, backend: Any) -> Any:
        return backend.launch(spec.name, _KERNELS[spec], x)

    def binary(a: Any, b: Any, *, backend: Any) -> Any:
        return backend.launch(spec.name, _KERNELS[spec], a, b)

    return kernel_entry(spec, unary if spec is specs.NEG else binary)


class _Source(WrappedSource):
    """Its kernels of three specs work later."""

    def open(self, name: str, device: str | None) -> Opened:
        """Open the clean backend, wrap it, and replace these kernels."""
        opened = super().open(name, device)
        tables: Any = [
            (owner, [entry for entry in table if entry.spec not in _KERNELS])
            for owner, table in opened.kernels
        ]
        tables.append((Owner("queue"), list(map(_entry, _KERNELS))))
        return dataclasses.replace(opened, kernels=tuple(tables))


def engine_of(make: Callable[[Any], Queue]) -> Engine:
    """Return an engine whose devices work later."""
    engine = build_engine()
    engine.devices.source = _Source(engine.devices.source, make)
    return engine


def try_queue(backend: str, wrong: WrongQueue) -> Trial:
    """Judge the late errors of a wrong queue."""
    session = Session(lambda: engine_of(wrong.make), backend)
    name = f"queue that {wrong.name}"
    try:
        late_errors.judge(session, wrong.kind)
    except (CheckFailedError, DeviceError) as error:
        return Trial(name, wrong.evidence in str(error), f"{wrong.kind.__name__}: {error}")
    return Trial(name, False, f"the check for {wrong.kind.__name__} passed")
