"""The context: which engine and device run kernels, and whether a tape records.

Contexts are immutable and held by a context variable, so threads and asyncio tasks do not share
them.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from tensorplug.dispatch.eager import EAGER
from tensorplug.dispatch.exits import Exit, Watch
from tensorplug.dispatch.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.handlers import Handlers
    from tensorplug.dispatch.observer import Observer
    from tensorplug.dispatch.tensor import Tensor


class EngineProtocol(Protocol):
    """The methods of an engine that ops and tensors use."""

    observers: tuple[Observer, ...]
    handlers: Handlers

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

    ``device`` None means the engine's active device, which ``set_backend`` changes.
    ``interpreter``: that of the device (``dispatch.eager``). ``plans`` is
    the device's cache of native plans. It is empty until the device is known, and if ``observers``
    must see every call. ``recording`` is a tape, ``scope`` a tidy scope; ``watched``: whether
    there is one of them, which must see all results: ``record`` shows them a plan, its inputs and
    its outputs. ``taped`` is the context like this one in which a new tape records, once it was
    needed. ``entry`` is the use of a ``ContextBlock``
    that made it current, ``below`` the context before that. ``outside``: on the device of an
    interpreter (``engine.interpreters``), the context in which that runs its kernels; ``call``
    tells the tensors of one call of the interpreted function from those of another.
    ``autocast``: the dtype of the innermost ``engine.autocast``, if any.
    """

    __slots__ = (
        "__weakref__",
        "autocast",
        "below",
        "call",
        "device",
        "engine",
        "entry",
        "interpreter",
        "observers",
        "outside",
        "plans",
        "record",
        "recording",
        "scope",
        "taped",
        "watched",
    )

    def __init__(
        self,
        engine: EngineProtocol | None,
        device: Device | None = None,
        recording: Any = None,
        scope: Any = None,
        observers: tuple[Observer, ...] = (),
        outside: Context | None = None,
        autocast: DType | None = None,
        call: object = None,
    ) -> None:
        self.engine: EngineProtocol | None = engine
        self.call: object = call
        self.device: Device | None = device
        self.interpreter: Any = EAGER if device is None else device.interpreter
        self.autocast: DType | None = autocast
        self.outside: Context | None = outside
        self.observers: tuple[Observer, ...] = observers
        self.recording: Any = recording
        self.scope: Any = scope
        self.watched: bool = recording is not None or scope is not None
        # That of the tape itself where it is alone, since each call of a training step runs it.
        self.record: Callable[[Any, Sequence[Any], Sequence[Tensor]], None] = (
            recording.record
            if recording is not None and scope is None
            else partial(_record, recording, scope)
        )
        self.taped: Context | None = None
        self.below: Context | None = None
        self.entry: Any = None  # of ``dispatch.blocks``, a higher module
        self.plans: dict[Hashable, Any] = {}
        if observers:
            return
        if device is not None:
            self.plans = device.plans if autocast is None else device.caches(autocast)[0]
        elif engine is not None:
            engine.follow(self)

    def recorded_by(self, recording: Any) -> Context:
        """Return a copy with another tape."""
        return Context(
            engine_of(self),
            self.device,
            recording,
            self.scope,
            self.observers,
            self.outside,
            self.autocast,
            self.call,
        )

    def replace(self, **changes: Any) -> Context:
        """Return a copy with ``changes``; with another device, it stays inside interpreters."""
        device, outside = changes.get("device", self.device), self.outside
        if outside is not None and device is not self.device and device and self.device:
            moved = self.device.beside(device)
            if moved is not device:
                device, outside = moved, outside.replace(device=device)
        return Context(
            engine_of(self),
            device,
            changes.get("recording", self.recording),
            changes.get("scope", self.scope),
            changes.get("observers", self.observers),
            outside,
            changes.get("autocast", self.autocast),
            self.call,
        )


def _record(
    recording: Any, scope: Any, plan: Any, inputs: Sequence[Any], outputs: Sequence[Tensor]
) -> None:
    """Record the outputs of a plan on the tape and in the scope."""
    if recording is not None:
        recording.record(plan, inputs, outputs)
    if scope is not None:
        for tensor in outputs:
            scope.adopt(tensor)


ROOT: Final = Context(None)  # of the process; its engine is built at first use
variable: Final[ContextVar[Context]] = ContextVar("tensorplug.context", default=ROOT)
innermost: Final = variable.get
"""Returns the context, even if its block has just been left elsewhere: then it has no plans."""


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


def current_context() -> Context:
    """Return the context of this thread or task."""
    context = innermost()
    entry = context.entry
    return context if entry is None or not entry.left else _recover(context)


def is_recorded(tensor: Tensor) -> bool:
    """Return whether a gradient is being recorded for ``tensor``."""
    return tensor._node is not None and current_context().recording is not None


def is_taped(context: Context | None) -> bool:
    """Return whether a tape records in ``context``, or outside the interpreters that it is in."""
    while context is not None:
        if context.recording is not None:
            return True
        context = context.outside
    return False


class use_context:  # noqa: N801  # used as a function: ``with use_context(context):``
    """Make a context current inside a ``with`` block, in this thread or task only."""

    __slots__ = ("_before", "_context", "_exit")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._exit: Watch | None = None

    def __enter__(self) -> Context:
        before = self._before = innermost()
        try:
            token = variable.set(self._context)
            if self._exit is not None:
                self._exit.restore = partial(variable.reset, token)
        except BaseException:
            variable.set(before)
            self._exit = None
            raise
        return self._context

    @Exit
    def __exit__(self, *_error: object) -> None:
        variable.set(self._before)  # not reset: the watch may still need the token
        self._exit = None


def entered(context: Context | None) -> Context:
    """Return the innermost context from ``context`` down whose block was not left."""
    while context is not None and context.entry is not None and context.entry.left:
        context = context.below
    assert context is not None
    return context


def _recover(context: Context) -> Context:
    """Return the current context, if ``context`` is current although its block was left."""
    entry = context.entry
    assert entry is not None
    try:
        if entry.token is None:
            raise ValueError
        variable.reset(entry.token)
    except (ValueError, RuntimeError):
        # In a copy of the contexts, of a task or thread that was started inside the block and
        # keeps its change. (The token is of another contexts object, or was used there.)
        context = context.replace()
    else:
        context = entered(context.below)
    variable.set(context)
    return context
