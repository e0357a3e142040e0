"""Profiles: time, memory and line of each kernel call."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TextIO, overload

from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.memory.live_objects import live_objects
from tensorplug.observers import callsite, profile_tables, profile_views
from tensorplug.observers.allocations import Allocations
from tensorplug.observers.observation import Observation, observe
from tensorplug.observers.profile_records import KernelRecord
from tensorplug.observers.timing import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from tensorplug.engine.plans import Plan
    from tensorplug.observers.callsite import CallSite

__all__ = ["KernelRecord", "Profile", "profile"]

P = ParamSpec("P")


class Profile(Observation):
    """The kernel calls of a block or a function.

    Attributes:
        kernels: a ``KernelRecord`` for each call that did not raise, in the order of their end,
            so that the inner calls of a decomposition precede it.
        result: the function's result; None in the ``with`` form.
        uploads: the number of tensors made from the caller's data.
        transfers: the number of tensors copied from one device to another.
        threads: the names of the threads that ran kernels, by identifier.

    """

    def __init__(self) -> None:
        super().__init__("profile")
        self.kernels: list[KernelRecord] = []
        self.result: Any = None
        self.uploads = 0
        self.transfers = 0
        self.threads: dict[int, str] = {}
        self._memory = Allocations()
        self._begun = 0
        self._ended: _End | None = None

    def __enter__(self) -> Self:
        if self._begun:
            raise RuntimeError("this profile has been used already; create another")
        self._begun = perf_counter_ns()
        return self._start([_Recorder(self)])

    def _finish(self) -> None:
        self._ended = _End(self.seconds, self.new_bytes, self.new_tensors, self.peak_bytes)
        self._memory = Allocations()  # stops watching tensors

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
        """The time by the devices' own clocks, in seconds; None if none has one."""
        times = [kernel.device_seconds for kernel in self.kernels if not kernel.depth]
        measured = [seconds for seconds in times if seconds is not None]
        return sum(measured) if measured else None

    @property
    def kernel_names(self) -> list[str]:
        """The names of the kernels that ran, without duplicates, in the order of ``kernels``."""
        return list(dict.fromkeys(kernel.name for kernel in self.kernels))

    @property
    def new_bytes(self) -> int:
        """The bytes allocated during the profile and in use at its end."""
        return self._ended.new_bytes if self._ended else self._memory.bytes

    @property
    def new_tensors(self) -> int:
        """The number of tensors at its end whose data was allocated during the profile."""
        return self._ended.new_tensors if self._ended else _count_holders(self._memory)

    @property
    def peak_bytes(self) -> int:
        """The maximum number of bytes allocated during the profile and in use at one time."""
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
        """Print a table: in colours if rich is installed, else as plain text.

        Args:
            by: ``"kernel"``: a row for each kernel and its input types, the slowest first.
                ``"call"``: a row for each call, in the order of their start.
            limit: the maximum number of rows; None for all.
            file: the output; standard output by default.
            width: in characters; the terminal's by default.

        Raises:
            ArgumentError: ``by`` is neither ``"kernel"`` nor ``"call"``.

        """
        profile_tables.show(self, by, limit, file, width)

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write the calls as a timeline in Chrome's trace format, which Perfetto can show.

        Open the file at https://ui.perfetto.dev or chrome://tracing.
        """
        profile_views.save_trace(self, path)


@dataclass(frozen=True, slots=True)
class _End:
    """The figures at a profile's end."""

    seconds: float
    new_bytes: int
    new_tensors: int
    peak_bytes: int


@overload
def profile(function: None = None, /) -> Profile: ...
@overload
def profile(function: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Profile: ...
def profile(function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Profile:
    """Record time, memory and line of every kernel call.

    ``profile(f, *args, **kwargs)`` calls ``f`` with these arguments and returns a ``Profile`` with
    its ``result``. ``with profile() as p:`` records the calls of this thread or task inside the
    block. An exception ends the profile, which keeps its records.

    Each kernel waits for its device, before and after, so that calls do not overlap. The overhead
    of the profile lies between the kernels, and so inside decompositions: compare times of
    kernels, and use ``time`` for whole functions.

    Raises:
        ArgumentError: ``function`` is not a function, or is a coroutine function.
        RuntimeError: a profile is entered a second time.

    Examples:
        >>> profile = tp.profile(lambda x: tp.sum(x * x), tp.ones((4, 4)))
        >>> profile.kernel_names, profile.new_bytes, float(profile.result)
        (['Multiply', 'Sum'], 4, 16.0)

    """
    recorded = Profile()
    if function is None:
        if args or kwargs:
            raise ArgumentError("profile: has no options; pass a function first")
        return recorded
    with recorded:
        recorded.result = observe("profile", function, args, kwargs)
    return recorded


class _OpenCall:
    """A call in progress: its line, and the time of its inner calls."""

    __slots__ = ("nested", "site")

    def __init__(self, site: CallSite | None) -> None:
        self.site = site
        self.nested = 0


class _Stack(threading.local):
    """The calls in progress in this thread, the innermost last."""

    def __init__(self) -> None:
        self.open: list[_OpenCall] = []


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
        call = _OpenCall(opened[-1].site if opened else callsite.find())
        since, depth = self._profile._memory.mark(), len(opened)
        try:
            opened.append(call)
            outputs, start, end, busy = measure(plan.device, run)
        finally:
            del opened[depth:]
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
            depth=depth,
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
        """Count an upload and its memory."""
        self._profile.uploads += 1
        self._profile._memory.count([tensor])

    def transferred(self, tensor: Tensor) -> None:
        """Count a transfer and its memory."""
        self._profile.transfers += 1
        self._profile._memory.count([tensor])


def _tensors(inputs: Sequence[Any]) -> Iterator[Tensor]:
    for operand in inputs:
        if isinstance(operand, list):
            yield from operand
        elif operand is not None:
            yield operand


def _count_holders(memory: Allocations) -> int:
    """Return the number of live tensors with counted memory; visits all objects."""
    return sum(
        memory.holds(tensor)
        for tensor in live_objects(Tensor)  # also those of variables
        if getattr(tensor, "_placement", None) is not None  # absent in a new tensor
    )
