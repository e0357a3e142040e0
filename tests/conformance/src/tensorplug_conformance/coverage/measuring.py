"""Watches a program on a backend that lacks kernels: who runs what, and what crosses the bus."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self

import tensorplug as tp
from tensorplug.compile.decomposed import find_groups
from tensorplug.engine.current import current_engine
from tensorplug.observers.observation import Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.engine.plans import Plan
    from tensorplug.observers.profiler import KernelRecord
    from tensorplug.plugin import Backend, Tensor
    from tensorplug_conformance.case import Array


LEFT: Final = ("fallback", "host")
"""How calls run that leave the device, and bring their results back to it."""

_SECONDS: Final = attrgetter("seconds")


@dataclass(slots=True)
class Moved:
    """Copies in one direction: how many there were, their bytes, and the seconds they took."""

    times: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __iadd__(self, other: Moved) -> Self:
        self.times += other.times
        self.bytes += other.bytes
        self.seconds += other.seconds
        return self


@dataclass(slots=True)
class Traffic:
    """Copies between host and device."""

    to_device: Moved = field(default_factory=Moved)
    to_host: Moved = field(default_factory=Moved)

    def __iadd__(self, other: Traffic) -> Self:
        self.to_device += other.to_device
        self.to_host += other.to_host
        return self


@dataclass(slots=True)
class Use:
    """The calls of one kernel that ran in one way.

    ``how``: native, widened, group, decomposed, fallback or host; ``partly``: its decomposition
    has calls that leave the device. ``device``: the one of the call. ``seconds``: without the
    calls of a decomposition, which have lines of their own, but with all of a fallback.
    """

    kernel: str
    how: str
    device: str
    partly: bool = False
    calls: int = 0
    seconds: float = 0.0
    traffic: Traffic = field(default_factory=Traffic)


@dataclass(slots=True)
class Saving:
    """What a native kernel would save: the calls that leave the device, and their copies.

    These are its own calls, or those inside its decomposition (``how``). ``seconds`` is their
    time, from which the time of the native kernel comes off.
    """

    kernel: str
    how: str
    calls: int = 0
    seconds: float = 0.0
    traffic: Traffic = field(default_factory=Traffic)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a backend ran of a program.

    ``seconds``: of the program, watched, so that each kernel waits for the device and runs by
    itself. ``uses``: the slowest first. ``savings``: the largest first; those of a decomposed
    kernel are also part of those of the kernels that it calls. ``traffic``: all copies;
    ``own``: those of the program itself, such as its data and the results that it reads.
    """

    backend: str
    seconds: float
    uses: list[Use]
    savings: list[Saving]
    traffic: Traffic
    own: Traffic


def coverage(backend: str, function: Callable[..., Any], /, *arguments: Any) -> Coverage:
    """Call a function on a backend; return what the backend ran of it, and what is to be gained.

    What the backend lacks runs on another backend, whatever ``TENSORPLUG_FALLBACK`` says. Each
    such call copies its inputs to the host and its results back, so a native kernel makes all
    copies of its calls vanish, whatever runs before and after it. Compiled functions run kernel
    by kernel, and calls in other threads than this one are not seen; their copies are.

    Raises: what the function raises, and what opening the backend raises.

    Examples:
        >>> found = coverage("cpu", lambda: tp.sum(tp.ones((4, 4))).item())
        >>> [(use.kernel, use.how) for use in found.uses if use.kernel == "Sum"]
        [('Sum', 'native')]
        >>> found.savings, found.own.to_host.times
        ([], 1)

    """
    engine = current_engine()
    device = engine.open(backend)
    policy, clean = engine.fallback, device.backend
    watch = _Watch(device)
    bus: Any = _Bus(clean, watch)
    engine.fallback, device.backend = "allow", bus
    try:
        with tp.use_backend(backend), tp.profile() as profile, watch:
            function(*arguments)
    finally:
        engine.fallback, device.backend = policy, clean
    tally = _Tally(device, watch)
    for record in profile.kernels:
        tally.add(record)
    return Coverage(
        device.name,
        profile.seconds,
        sorted(tally.uses.values(), key=_SECONDS, reverse=True),
        sorted(tally.savings.values(), key=_SECONDS, reverse=True),
        watch.total,
        watch.own,
    )


class _Bus:
    """Passes every call on to a backend, and tells of the copies."""

    def __init__(self, backend: Backend, watch: _Watch) -> None:
        self._backend = backend
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def from_host(self, array: Array) -> Any:
        """Copy to the device."""
        began = time.perf_counter()
        buffer = self._backend.from_host(array)
        moved = Moved(1, array.nbytes, time.perf_counter() - began)
        self._watch.copied(Traffic(to_device=moved))
        return buffer

    def to_host(self, buffer: Any) -> Array:
        """Copy to the host."""
        began = time.perf_counter()
        array = self._backend.to_host(buffer)
        moved = Moved(1, array.nbytes, time.perf_counter() - began)
        self._watch.copied(Traffic(to_host=moved))
        return array


class _Watch(Observation):
    """Watches the calls that leave a device: ``left`` has the copies of each, in their order.

    ``grouped``: names and input types of decomposed calls that are groups when nobody watches.
    """

    __slots__ = ("_device", "_lock", "_open", "_tried", "grouped", "left", "own", "total")

    def __init__(self, device: Device) -> None:
        super().__init__("coverage")
        self._device = device
        self._lock = threading.Lock()
        self._open = _Open()
        self._tried: set[Any] = set()
        self.grouped: set[Any] = set()
        self.left: list[Traffic] = []
        self.own = Traffic()
        self.total = Traffic()

    def __enter__(self) -> Self:
        return self._start([self])

    def around(
        self, plan: Plan, _inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run one call."""
        if plan.device is not self._device:
            return run()
        if plan.how == "decomposed":
            self._find_groups(plan)
        if plan.how not in LEFT:
            return run()
        around, self._open.call = self._open.call, Traffic()
        try:
            outputs = run()
            self.left.append(self._open.call)
        finally:
            self._open.call = around
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Do nothing: the bus tells of it."""

    def copied(self, traffic: Traffic) -> None:
        """Count a copy, as part of the call that makes it."""
        with self._lock:
            self.total += traffic
            call = self.own if self._open.call is None else self._open.call
            call += traffic

    def _find_groups(self, plan: Plan) -> None:
        key = _key(plan.spec.name, plan.inputs)
        if key not in self._tried:
            self._tried.add(key)
            fusion = find_groups(current_engine(), plan)
            if fusion is not None and fusion.groups:
                self.grouped.add(key)


class _Open(threading.local):
    """The call of this thread that has left the device."""

    call: Traffic | None = None


def _key(name: str, types: Iterable[Any]) -> Any:
    return name, tuple(tuple(type_) if isinstance(type_, list) else type_ for type_ in types)


@dataclass(slots=True)
class _Left:
    """Calls that have left the device, inside a call of ``depth`` or that call itself."""

    depth: int
    calls: int
    seconds: float
    traffic: Traffic


class _Tally:
    """Adds up the calls of a profile, in which the calls of a decomposition precede it."""

    def __init__(self, device: Device, watch: _Watch) -> None:
        self._device = device
        self._grouped = watch.grouped
        self._traffic = iter(watch.left)
        self._pending: list[_Left] = []  # of calls whose decomposition has not ended
        self.uses: dict[Any, Use] = {}
        self.savings: dict[str, Saving] = {}

    def add(self, record: KernelRecord) -> None:
        """Count one call."""
        inner: list[_Left] = []
        while self._pending and self._pending[-1].depth > record.depth:
            inner.append(self._pending.pop())
        how, seconds = str(record.how), record.self_seconds
        if record.device != self._device.name:
            if record.depth:  # a fallback's, which has its time
                return
        elif how in LEFT:
            seconds = record.seconds
            inner = [_Left(record.depth, 1, seconds, next(self._traffic))]
        elif not inner and _key(record.name, record.inputs) in self._grouped:
            how = "group"
        partly = bool(inner) and how not in LEFT
        first = Use(record.name, how, record.device, partly)
        use = self.uses.setdefault((record.name, how, record.device, partly), first)
        use.calls += 1
        use.seconds += seconds
        if not inner:
            return
        saving = self.savings.setdefault(record.name, Saving(record.name, how))
        whole = _Left(record.depth, 0, 0.0, Traffic())
        for left in inner:
            whole.calls += left.calls
            whole.seconds += left.seconds
            whole.traffic += left.traffic
        saving.calls += whole.calls
        saving.seconds += whole.seconds
        saving.traffic += whole.traffic
        if how in LEFT:
            use.traffic += whole.traffic
        self._pending.append(whole)
