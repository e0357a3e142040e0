"""The context: which engine and device run kernels, and whether a tape records.

Contexts are immutable and held by a context variable, so threads and asyncio tasks do not share
them.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, Protocol

from tensorplug.dispatch.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.observer import Observer
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "ROOT",
    "Context",
    "ContextGuard",
    "EngineProtocol",
    "current_context",
    "engine_of",
    "set_default_engine",
    "use_context",
]


class EngineProtocol(Protocol):
    """The methods of an engine that ops and tensors use."""

    observers: tuple[Observer, ...]

    def run(
        self,
        context: Context,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run one kernel on the slow path; return a tensor or a list of them."""

    def convert(
        self,
        context: Context,
        value: Any,
        dtype: DType | None,
        what: str,
        *,
        device: str | None = None,
        copy: bool | None = True,
    ) -> Tensor:
        """Return ``value`` as a tensor on ``device`` (None: the context's).

        Return a tensor on that device unchanged. Copy an array; with ``copy`` None share its
        memory if the device can, with False always. ``what`` names the value in messages.
        """

    def constant(
        self, context: Context, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return numbers, input ``position`` of a call, as a cached tensor.

        ``value`` is a Python number, whose dtype follows that of ``peer``, or a tuple of integers.
        """

    def open(self, name: str | None) -> Device:
        """Return the device called ``name``, opening it if necessary; None: the active one."""

    def follow(self, context: Context) -> None:
        """Set ``context.plans`` to those of the active device, now and when it changes."""


class Context:
    """The state that determines how a kernel call runs.

    ``device`` None means the engine's active device, which ``set_backend`` changes. ``plans`` is
    the device's cache of native plans. It is empty until the device is known, and if ``observers``
    must see every call. ``recording`` is a tape, ``scope`` a tidy scope; ``watched``: whether
    there is one of them, which must see all results.
    """

    __slots__ = (
        "__weakref__",
        "device",
        "engine",
        "observers",
        "plans",
        "recording",
        "scope",
        "watched",
    )

    def __init__(
        self,
        engine: EngineProtocol | None,
        device: Device | None = None,
        recording: Any = None,
        scope: Any = None,
        observers: tuple[Observer, ...] = (),
    ) -> None:
        self.engine = engine
        self.device = device
        self.observers = observers
        self.recording = recording
        self.scope = scope
        self.watched = recording is not None or scope is not None
        self.plans: dict[Hashable, Any] = {}
        if observers:
            return
        if device is not None:
            self.plans = device.plans
        elif engine is not None:
            engine.follow(self)

    @property
    def trace(self) -> Any:
        """The trace of the function that is being compiled; None if none is."""
        return None if self.device is None else self.device.trace

    def replace(self, **changes: Any) -> Context:
        """Return a copy with ``changes``."""
        return Context(
            engine_of(self),
            changes.get("device", self.device),
            changes.get("recording", self.recording),
            changes.get("scope", self.scope),
            changes.get("observers", self.observers),
        )

    def record(self, plan: Any, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Record the outputs of a plan on the tape and in the scope."""
        if self.recording is not None and plan.taped:
            self.recording.record(plan, inputs, outputs)
        if self.scope is not None:
            for tensor in outputs:
                self.scope.adopt(tensor)


ROOT: Final = Context(None)  # of the process; its engine is built at first use
_context: Final[ContextVar[Context]] = ContextVar("tensorplug.context", default=ROOT)
current_context: Final = _context.get


class _Default:
    """How to build the default engine; the package sets it at import."""

    build: Callable[[], EngineProtocol] | None = None
    lock = Lock()  # re-entrant: the builder notices when a plugin runs an op


def set_default_engine(build: Callable[[], EngineProtocol]) -> None:
    """Set the function that builds the default engine when the first op needs one."""
    _Default.build = build


def engine_of(context: Context) -> EngineProtocol:
    """Return the context's engine, building the default one at first use."""
    if context.engine is None:
        if _Default.build is None:
            raise RuntimeError("tensorplug.dispatch was used without the tensorplug package")
        with _Default.lock:  # two threads must not build two engines
            if ROOT.engine is None:
                engine = _Default.build()
                engine.follow(ROOT)
                ROOT.engine = engine
        context.engine = ROOT.engine
    return context.engine


class use_context:  # noqa: N801  # used as a function: ``with use_context(context):``
    """Make a context current inside a ``with`` block, in this thread or task only."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> Context:
        self._token: Token[Context] = _context.set(self._context)
        return self._context

    def __exit__(self, *_error: object) -> None:
        _context.reset(self._token)


class ContextGuard:
    """Makes a context current for a user's context manager, which cannot be entered twice.

    A second entry would overwrite the context to which the first one must return.
    """

    __slots__ = ("_entered", "_who")

    def __init__(self, who: str) -> None:
        self._who = who
        self._entered: use_context | None = None

    def enter(self, context: Context) -> None:
        """Make ``context`` current.

        Raises:
            RuntimeError: the object has been entered already, here or in another thread.

        """
        if self._entered is not None:
            raise RuntimeError(f"this {self._who} has been entered already; create another")
        self._entered = use_context(context)
        self._entered.__enter__()

    def leave(self) -> None:
        """Make the previous context current again."""
        entered, self._entered = self._entered, None
        if entered is not None:
            entered.__exit__()
