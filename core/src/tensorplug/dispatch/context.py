"""The context: which engine and device run kernels, and whether a tape records.

Contexts are immutable and held by a context variable, so threads and asyncio tasks do not share
them.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.exits import Exit, Watch, watch
from tensorplug.dispatch.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.engine_protocol import EngineProtocol
    from tensorplug.dispatch.observer import Observer
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "ROOT",
    "Context",
    "ContextBlock",
    "current_context",
    "engine_of",
    "innermost",
    "is_recorded",
    "set_default_engine",
    "use_context",
]


class Context:
    """The state that determines how a kernel call runs.

    ``device`` None means the engine's active device, which ``set_backend`` changes. ``plans`` is
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
        self.autocast: DType | None = autocast
        self.outside: Context | None = outside
        self.observers: tuple[Observer, ...] = observers
        self.recording: Any = recording
        self.scope: Any = scope
        self.watched: bool = recording is not None or scope is not None
        self.record: Callable[[Any, Sequence[Any], Sequence[Tensor]], None] = (
            recording.record
            if recording is not None and scope is None
            else partial(_record, recording, scope)
        )
        self.taped: Context | None = None
        self.below: Context | None = None
        self.entry: _Entry | None = None
        self.plans: dict[Hashable, Any] = {}
        if observers:
            return
        if device is not None:
            self.plans = device.plans if autocast is None else device.caches(autocast)[0]
        elif engine is not None:
            engine.follow(self)

    @property
    def trace(self) -> Any:
        """The trace of the function that is being compiled; None if none is."""
        return None if self.device is None else self.device.trace

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
_context: Final[ContextVar[Context]] = ContextVar("tensorplug.context", default=ROOT)
_here: Final[ContextVar[None]] = ContextVar("tensorplug.here")  # only its tokens matter
innermost: Final = _context.get
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


class use_context:  # noqa: N801  # used as a function: ``with use_context(context):``
    """Make a context current inside a ``with`` block, in this thread or task only."""

    __slots__ = ("_before", "_context", "_exit")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._exit: Watch | None = None

    def __enter__(self) -> Context:
        before = self._before = innermost()
        try:
            token = _context.set(self._context)
            if self._exit is not None:
                self._exit.restore = partial(_context.reset, token)
        except BaseException:
            _context.set(before)
            self._exit = None
            raise
        return self._context

    @Exit
    def __exit__(self, *_error: object) -> None:
        _context.set(self._before)  # not reset: the watch may still need the token
        self._exit = None


class _Entry:
    """One use of a ``ContextBlock``: whether it was left, and its token while that matters.

    ``here``: a token that tells the thread's or task's contexts object from a copy of it.
    """

    __slots__ = ("block", "context", "here", "left", "token")

    def __init__(self, block: ContextBlock, context: Context) -> None:
        self.block: ContextBlock = block
        self.context: Context = context
        self.left: bool = False
        self.here: Token[None] = _here.set(None)
        self.token: Token[Context] | None = None


class ContextBlock:
    """Base class of the user's context managers that change the context.

    A block undoes only its own change: if blocks do not end in the reverse order, as in
    generators, the changes of the others stay. Tasks and threads that were started inside,
    with a copy of the context, keep the change. A block that another thread ends
    also ends in the thread that entered it: at the next op there or, if that thread is inside an
    inner block, when the inner block ends. The same holds for a copy of the context in which
    the block ends.
    """

    __slots__ = ("_ending", "_entry", "_exit", "_watch", "_who")

    _exit: Watch | None
    _ending: Watch | None
    _watch: Watch | None

    def __init__(self, who: str) -> None:
        self._who = who
        self._entry: _Entry | None = None
        self._exit = self._watch = self._ending = None

    def _derive(self, below: Context) -> Context:
        """Return a new context: ``below`` with the change of this block."""
        raise NotImplementedError

    def _enter(self, ending: Callable[[], Any] | None = None) -> None:
        """Make the changed context current; to be called by ``__enter__``.

        ``ending`` is what else ``__exit__`` does: it is called if an interrupt prevents that.

        Raises:
            RuntimeError: the block has been entered already, here or in another thread.

        """
        entry, watched = self._entry, self._watch
        abandoned = watched is not None and watched() is None
        if entry is not None and not entry.left and not abandoned:
            raise RuntimeError(f"this {self._who} has been entered already; create another")
        below = current_context()
        context = self._derive(below)
        context.below = below
        entry = context.entry = _Entry(self, context)
        try:
            entry.token = _context.set(context)
            if self._exit is not None and self._exit() is not None:
                self._watch = self._exit
                self._watch.restore = partial(_context.reset, entry.token)
                self._ending = None if ending is None else watch(self._exit(), ending)
            self._entry = entry
        except BaseException:
            _context.set(below)
            self._exit = self._watch = self._ending = None
            raise

    def _leave(self) -> None:
        """Undo the change; to be called at the end of ``__exit__``, even after an error.

        A second call does nothing.
        """
        entry = self._entry
        if entry is None or entry.left:
            return
        entry.left = True
        current = innermost()
        if current.entry is entry:
            _context.set(_entered(current.below))
            try:
                _here.reset(entry.here)
            except ValueError:
                # In a copy: an event loop closes an asynchronous generator in another task. Who
                # has entered the block finds no plan, checks, and leaves it.
                entry.context.plans = {}
            else:
                entry.token = None
        else:
            _remove(entry, current)
        del entry.context  # which refers to the entry: a cycle would wait for the collector
        self._exit = self._watch = self._ending = self._entry = None


def _entered(context: Context | None) -> Context:
    """Return the innermost context from ``context`` down whose block was not left."""
    while context is not None and context.entry is not None and context.entry.left:
        context = context.below
    assert context is not None
    return context


def _remove(entry: _Entry, current: Context) -> None:
    """Undo the change of a block that is not the innermost one, or was entered elsewhere."""
    # A thread that still has its context finds no plan there, checks, and leaves it.
    entry.context.plans = {}
    above: list[_Entry] = []
    found: Context | None = current
    while found is not None and found.entry is not entry:
        if found.entry is not None:
            above.append(found.entry)
        found = found.below
    if found is None:
        return
    context = _entered(found.below)
    for other in reversed(above):
        if not other.left:
            changed = other.block._derive(context)
            changed.below, changed.entry = context, other
            context = other.context = changed
    _context.set(context)


def _recover(context: Context) -> Context:
    """Return the current context, if ``context`` is current although its block was left."""
    entry = context.entry
    assert entry is not None
    try:
        if entry.token is None:
            raise ValueError
        _context.reset(entry.token)
    except (ValueError, RuntimeError):
        # In a copy of the contexts, of a task or thread that was started inside the block and
        # keeps its change. (The token is of another contexts object, or was used there.)
        context = context.replace()
    else:
        context = _entered(context.below)
    _context.set(context)
    return context
