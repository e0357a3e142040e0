"""Honest backends of unusual kinds, which the suite must let pass."""

from __future__ import annotations

import random
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.owner import Owner
from tensorplug.engine.engine import Engine, Opened
from tensorplug.plugin import OutOfRangeError, TensorplugError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugins.assembly import core_registry
from tensorplug_conformance.case import mapped
from tensorplug_example_minimal.backend import MinimalBackend
from tensorplug_example_minimal.driver import Device
from tensorplug_example_minimal.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from tensorplug.plugin import KernelEntry
    from tensorplug_conformance.case import Array

NAME = "unusual"
OPENING = 0.3  # seconds
_RELEASED = 300  # buffers: more than are released at first, fewer than afterwards


class _Source:
    """A backend that is opened without a plugin."""

    def __init__(self, make: Callable[[], Any], table: Iterable[KernelEntry]) -> None:
        self._make = make
        self._table = table

    def names(self) -> list[str]:
        return [NAME]

    def devices(self, name: str) -> None:
        """Return None: ``open`` decides."""

    def open(self, name: str, device: str | None) -> Opened:
        del name, device
        owner = Owner(NAME, "0")
        table: Any = self._table
        return Opened(self._make(), owner, ((owner, table),))


def _engine(make: Callable[[], Any], table: Iterable[KernelEntry]) -> Engine:
    return Engine(_Source(make, table), core_registry(), fallback="error")


class _Pending:
    """A buffer whose array comes later."""

    def __init__(self, type_: TensorType, array: Future[Any]) -> None:
        self.type = type_
        self.array = array


class _Asynchronous(MinimalBackend):
    """A thread computes. Errors come when a result is read, and when the device waits."""

    name, device = NAME, "a thread that computes"

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)
        self.errors: list[BaseException] = []

    def from_host(self, array: Array) -> Any:
        ready: Future[Any] = Future()
        ready.set_result(array.copy())
        return self.hold(TensorType(dt.of(array.dtype), array.shape), ready)

    def hold(self, type_: TensorType, array: Future[Any]) -> _Pending:
        """Return a buffer of what will be there."""
        return _Pending(type_, array)

    def to_host(self, buffer: Any) -> Array:
        array: Array = buffer.array.result()
        return array

    def describe(self, buffer: object) -> TensorType:
        if not isinstance(buffer, _Pending):
            raise TypeError(f"{type(buffer).__name__} is not a buffer")
        return buffer.type

    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        return id(buffer), buffer.type.nbytes

    def compute(self, work: Callable[[], Any]) -> Any:
        """Do something that may fail."""
        try:
            return work()
        except TensorplugError as error:
            self.errors.append(error)
            raise

    def synchronize(self) -> None:
        self.thread.submit(lambda: None).result()
        if self.errors:
            error = self.errors[0]
            self.errors.clear()
            raise error

    def memory(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        self.thread.shutdown()


def _later(entry: KernelEntry) -> KernelEntry:
    """Return a kernel that is computed by the backend's thread, in memory of its own."""

    program = entry.function.args[0]  # type: ignore[attr-defined]  # of ``launch``

    def kernel(*buffers: Any, backend: _Asynchronous, out: Any, **asked: Any) -> Any:
        several = isinstance(out, tuple)
        types = out if several else [out]

        def work() -> list[Array]:
            arrays = [mapped(lambda one: one.array.result(), x) for x in buffers]
            found = [np.empty(type_.shape, type_.dtype.numpy) for type_ in types]
            try:
                with np.errstate(all="ignore"):
                    program(*arrays, out=found if several else found[0], **asked)
            except IndexError as error:
                raise OutOfRangeError(str(error)) from error
            return found

        whole = backend.thread.submit(backend.compute, work)
        parts = [
            backend.hold(type_, backend.thread.submit(lambda at=at: whole.result()[at]))
            for at, type_ in enumerate(types)
        ]
        return parts if several else parts[0]

    return replace(entry, function=kernel)


def asynchronous() -> Engine:
    """Return an engine on a device that computes later."""
    return _engine(_Asynchronous, [_later(entry) for entry in kernels])


class _Held(_Pending):
    """A buffer whose memory the thread frees, once its turn has come."""

    def __init__(self, type_: TensorType, array: Future[Any], backend: _Delayed) -> None:
        super().__init__(type_, array)
        self.backend = backend

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the backend is closed
            self.backend.thread.submit(self.backend.free, self.array)


class _Delayed(_Asynchronous):
    """Computes and frees after delays, other ones each time."""

    def __init__(self) -> None:
        super().__init__()
        self.delays = random.Random(1)
        self.live = 0

    def hold(self, type_: TensorType, array: Future[Any]) -> _Pending:
        self.live += 1
        return _Held(type_, array, self)

    def compute(self, work: Callable[[], Any]) -> Any:
        self.wait()
        return super().compute(work)

    def free(self, _array: Future[Any]) -> None:
        """Count one buffer less, some time after its release."""
        self.wait()
        self.live -= 1

    def wait(self) -> None:
        """Let some time pass, most often none."""
        time.sleep(max(0.0, self.delays.uniform(-0.02, 0.002)))

    def synchronize(self) -> None:
        try:
            super().synchronize()
        finally:
            super().synchronize()  # frees what the work before has released

    def memory(self) -> dict[str, int]:
        return {"live": self.live}


class _DelayedCounting(_Delayed):
    """Counts its buffers, too."""

    def live_buffers(self) -> int:
        return self.live

    def counts(self, buffer: object) -> bool:
        return isinstance(buffer, _Held)

    def stop_counting(self) -> None:
        """Count anyway."""


def delayed() -> Engine:
    """Return an engine on a device that computes and frees after random delays."""
    return _engine(_Delayed, [_later(entry) for entry in kernels])


def delayed_counting() -> Engine:
    """Return such an engine whose device counts its buffers."""
    return _engine(_DelayedCounting, [_later(entry) for entry in kernels])


class _KeepsMemory(Device):
    """Keeps the memory of the last buffers that were released."""

    def __init__(self) -> None:
        super().__init__()
        self.released: deque[int] = deque()

    def free(self, handle: int) -> None:
        self.released.append(handle)
        if len(self.released) > _RELEASED:
            super().free(self.released.popleft())


class _FreesLater(MinimalBackend):
    """Has a driver that keeps memory, and says how much is allocated."""

    name, device = NAME, "a device that frees memory later"

    def __init__(self) -> None:
        self.driver = _KeepsMemory()


def frees_later() -> Engine:
    """Return an engine on a device that frees memory later."""
    return _engine(_FreesLater, kernels)


class _OpensSlowly(MinimalBackend):
    name, device = NAME, "a device that takes a while to open"

    def __init__(self) -> None:
        super().__init__()
        time.sleep(OPENING)


def opens_slowly() -> Engine:
    """Return an engine on a device that takes a while to open."""
    return _engine(_OpensSlowly, kernels)
