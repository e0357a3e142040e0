"""Profiles: what each kernel call took, what it made, and which line made the call."""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO

from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.observers import callsite, profile_tables, profile_views
from tensorplug.observers.allocations import Allocations
from tensorplug.observers.observation import Observation, observe
from tensorplug.observers.profile_records import KernelRecord
from tensorplug.observers.timing import timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from tensorplug.engine.plans import Plan
    from tensorplug.observers.callsite import CallSite

__all__ = ["KernelRecord", "Profile", "profile"]


class Profile:
    """What kernels did between the beginning and the end of a profile.

    Attributes:
        kernels: a ``KernelRecord`` for each call, in the order in which they ended, so that what
            a decomposition called stands before it. A call that raised is not among them.
        result: what the function returned; None in the ``with`` form.
        uploads: how many tensors were made from data of the caller's.
        transfers: how many tensors were copied from one device to another.
        threads: the names of the threads in which kernels ran, by identifier.

    """

    def __init__(self) -> None:
        self.kernels: list[KernelRecord] = []
        self.result: Any = None
        self.uploads = 0
        self.transfers = 0
        self.threads: dict[int, str] = {}
        self._memory = Allocations()
        self._observation = Observation("profile")
        self._begun = 0
        self._ended: _End | None = None

    def __enter__(self) -> Self:
        if self._begun:
            raise RuntimeError("this profile was made already; make another")
        self._observation.start([_Recorder(self)])  # not kept: it keeps the profile
        self._begun = perf_counter_ns()
        return self

    def __exit__(self, *_error: object) -> None:
        seconds = self.seconds
        self._observation.stop()
        self._ended = _End(seconds, self.new_bytes, self.new_tensors, self.peak_bytes)
        self._memory = Allocations()  # nothing is watched any more

    @property
    def seconds(self) -> float:
        """The time from beginning to end, in seconds."""
        if self._ended:
            return self._ended.seconds
        return (perf_counter_ns() - self._begun) / 1e9 if self._begun else 0.0

    @property
    def kernel_seconds(self) -> float:
        """The time spent in kernels, in seconds."""
        return sum(kernel.seconds for kernel in self.kernels if not kernel.depth)

    @property
    def device_seconds(self) -> float | None:
        """The time that devices worked by their own clocks; None where none has one."""
        found = [kernel.device_seconds for kernel in self.kernels if not kernel.depth]
        measured = [item for item in found if item is not None]
        return sum(measured) if measured else None

    @property
    def kernel_names(self) -> list[str]:
        """The names of the kernels that ran, each once, in the order of ``kernels``."""
        return list(dict.fromkeys(kernel.name for kernel in self.kernels))

    @property
    def new_bytes(self) -> int:
        """The bytes made during the profile and held at its end."""
        return self._ended.new_bytes if self._ended else self._memory.bytes

    @property
    def new_tensors(self) -> int:
        """How many tensors held data made during the profile at its end."""
        return self._ended.new_tensors if self._ended else _holding(self._memory)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that were held at a time of those made during the profile."""
        return self._ended.peak_bytes if self._ended else self._memory.peak

    def __str__(self) -> str:
        return profile_views.summary(self)

    def __repr__(self) -> str:
        return f"<Profile of {len(self.kernels)} kernel calls in {self.seconds * 1e3:.3f} ms>"

    def show(
        self,
        *,
        by: Literal["kernel", "call"] = "kernel",
        limit: int | None = 40,
        file: TextIO | None = None,
        width: int | None = None,
    ) -> None:
        """Print a table: in colours where rich is installed, as plain text elsewhere.

        Args:
            by: ``"kernel"``: a row for each kernel and types of inputs, the one that took the
                longest first. ``"call"``: a row for each call, in the order of their beginning.
            limit: how many rows at most; None for all.
            file: where to; standard output by default.
            width: in characters; the terminal's by default.

        Raises:
            ArgumentError: there is no such ``by``.

        """
        profile_tables.show(self, by, limit, file, width)

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write the calls as a trace in Chrome's format, which Perfetto shows as a timeline.

        Open the file at https://ui.perfetto.dev or chrome://tracing.
        """
        profile_views.save_trace(self, path)


@dataclass(frozen=True, slots=True)
class _End:
    """The figures at a profile's end, when nothing is counted any more."""

    seconds: float
    new_bytes: int
    new_tensors: int
    peak_bytes: int


def profile(function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Profile:
    """Record what every kernel call does.

    ``profile(f, *args)`` calls ``f(*args)`` and returns a ``Profile`` with its ``result``.
    ``with profile() as p:`` records what this thread or task does inside the block; other
    threads are not seen. An exception ends the profile, which keeps what it has.

    Each kernel waits for its device, before and after, so that its time is its own. What the
    profile costs lies between the kernels, and so inside decompositions: compare times of
    kernels, and use ``time`` for whole functions.

    Raises:
        ArgumentError: ``function`` is no function, or a coroutine function.
        RuntimeError: a profile is entered a second time.

    """
    made = Profile()
    if function is None:
        if args or kwargs:
            raise ArgumentError("profile: has no options; give a function first")
        return made
    with made:
        made.result = observe("profile", function, args, kwargs)
    return made


class _Open:
    """A call that has begun: where it was made, and the time that calls inside it took."""

    __slots__ = ("nested", "site")

    def __init__(self, site: CallSite | None) -> None:
        self.site = site
        self.nested = 0


class _Stack(threading.local):
    """The calls of this thread that have begun, the innermost last."""

    def __init__(self) -> None:
        self.open: list[_Open] = []


class _Recorder:
    """The observer behind a profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._stack = _Stack()

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run and record."""
        opened = self._stack.open
        call = _Open(opened[-1].site if opened else callsite.find())
        since = self._profile._memory.mark()
        opened.append(call)
        try:
            outputs, start, end, busy = timed(plan.device, run)
        finally:
            opened.pop()
        if opened:
            opened[-1].nested += end - start
        thread = threading.current_thread()
        self._profile.threads.setdefault(threading.get_ident(), thread.name)
        fresh = self._profile._memory.count(outputs, _tensors(inputs), since)
        record = KernelRecord(
            name=plan.spec.name,
            inputs=tuple(
                tuple(operand) if isinstance(operand, list) else operand for operand in plan.inputs
            ),
            outputs=tuple(output.type for output in plan.outputs),
            attributes=plan.attributes,
            how=plan.how,
            backend=plan.device.backend_name,
            device=plan.device.name,
            owner=str(plan.owner),
            depth=len(opened),
            start=(start - self._profile._begun) / 1e9,
            seconds=(end - start) / 1e9,
            self_seconds=(end - start - call.nested) / 1e9,
            new_bytes=fresh,
            live_bytes=self._profile._memory.bytes,
            site=call.site,
            thread=threading.get_ident(),
            device_seconds=None if busy is None else busy / 1e9,
        )
        self._profile.kernels.append(record)
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Count it and its memory."""
        self._profile.uploads += 1
        self._profile._memory.count([tensor])

    def transferred(self, tensor: Tensor) -> None:
        """Count it and its memory."""
        self._profile.transfers += 1
        self._profile._memory.count([tensor])


def _tensors(inputs: Sequence[Any]) -> Iterator[Tensor]:
    for given in inputs:
        if isinstance(given, list):
            yield from given
        elif given is not None:
            yield given


def _holding(memory: Allocations) -> int:
    """Return how many live tensors hold memory that was counted; looks through the heap."""
    count = 0
    for get_object_ in gc.get_objects():
        if type(get_object_) is not Tensor:  # variables hold such a one
            continue
        made = (
            getattr(get_object_, "_placement", None) is not None
        )  # not so while it is being made
        count += made and memory.holds(get_object_)
    return count
