"""Freeing tensors early, and seeing what is held.

Nothing here is needed for correctness: a buffer is freed when its last tensor dies. ``tidy``
frees at the end of a scope what Python would keep a little longer.
"""

from __future__ import annotations

import inspect
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from tensorplug.dispatch.context import ContextGuard, current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, BackendClosedError, DisposedError
from tensorplug.memory.accounting import DeviceMemory, Memory, memory
from tensorplug.tensors.tree import leaves

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DeviceMemory", "Memory", "dispose", "keep", "memory", "tidy"]


class Scope:
    """The tensors made while a ``tidy`` was the innermost one.

    Threads and tasks that were started inside share it. One that outlives it, or a generator
    that was left half way, goes on in its context; what these make is then the business of the
    nearest scope around that is still open.
    """

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.closed = False
        self._members: dict[int, weakref.ref[Tensor]] = {}

    def nearest_open(self) -> Scope | None:
        """Return this scope, or if it is closed the nearest one around that is not."""
        scope: Scope | None = self
        while scope is not None and scope.closed:
            scope = scope.parent
        return scope

    def adopt(self, tensor: Tensor) -> None:
        """Make ``tensor`` end with this scope."""
        if not self.closed:
            self._members[id(tensor)] = weakref.ref(tensor)
            return
        scope = self.nearest_open()
        if scope is not None:
            scope.adopt(tensor)

    def release(self, tensor: Tensor) -> bool:
        """Let ``tensor`` outlive this scope; return whether it belonged to it."""
        member = self._members.get(id(tensor))
        # An id may have been used again; the reference tells.
        if member is None or member() is not tensor:
            return False
        del self._members[id(tensor)]
        return True

    def close(self) -> None:
        """Dispose of what still belongs to this scope."""
        self.closed = True
        for member in list(self._members.values()):  # another thread may just be adding one
            tensor = member()
            if tensor is not None:
                tensor.dispose()
        self._members.clear()


class _Tidy:
    """The context manager form of ``tidy``."""

    def __init__(self) -> None:
        self._entered = ContextGuard("tidy")

    def __enter__(self) -> Self:
        context = current_context()
        scope = Scope(context.scope)
        self._entered.enter(context.replace(scope=scope))
        self._scope = scope
        return self

    def __exit__(self, *error: object) -> None:
        try:
            # The context stays where it was entered, if that is another context: an event loop
            # or the garbage collector may close a generator that was left half way. A context
            # whose scope is closed does no harm.
            with suppress(ValueError):
                self._entered.leave()
            _pass_over_closed()
        finally:
            self._scope.close()

    def hand_over(self, result: Any) -> None:
        """Give the tensors of ``result`` to the scope around this one."""
        found = leaves(result)
        for leaf in found:
            _check_finished(leaf)
        for leaf in found:
            if isinstance(leaf, Tensor) and self._scope.release(leaf) and self._scope.parent:
                self._scope.parent.adopt(leaf)


def _pass_over_closed() -> None:
    """Leave a context whose scope was closed while it was not on top, as a generator's may be."""
    context = current_context()
    if context.scope is not None and context.scope.closed:
        use_context(context.replace(scope=context.scope.nearest_open())).__enter__()


def tidy(function: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
    """Free at the end what was made in between, except the result.

    ``tidy(f, *args)`` returns ``f(*args)``; the tensors in it (in nested dicts, lists, tuples,
    named tuples and dataclasses, which may hold themselves) live on, and so do those given to
    ``keep``. They stay readable also where they share memory with what is freed. ``with
    tidy():`` frees all that was not given to ``keep``. An exception inside frees everything
    made. Variables are never freed, nor is what was made before.

    In ``async`` code use ``with tidy():``, also around ``await``: each task has scopes of its
    own, but a task that is started inside shares that scope, and what it made is freed with it.
    A generator shares scopes with whoever asks it for values, so do not ``yield`` inside.

    Raises:
        ArgumentError: ``function`` is no function, or one that only starts its work: a
            coroutine or generator function. Or the result holds what is not finished: a
            coroutine, another awaitable, a generator.
        RuntimeError: when one scope is entered again before it was left.

    """
    scope = _Tidy()
    if function is None:
        return scope
    if not callable(function):
        raise ArgumentError(f"tidy: needs a function, got {type(function).__name__}")
    _check_does_its_work(function)
    with scope:
        result = function(*args, **kwargs)
        scope.hand_over(result)
    return result


def _check_does_its_work(function: Callable[..., Any]) -> None:
    name = repr(getattr(function, "__name__", function))
    if inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"tidy: {name} is a coroutine function, of which nothing has run when tidy ends; "
            f"write `with tidy(): await ...`, and keep(...) what is to live on"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentError(
            f"tidy: {name} is a generator function, of which nothing has run when tidy ends; "
            "give tidy a function that returns a list of what it yields"
        )


def _check_finished(leaf: object) -> None:
    if inspect.isgenerator(leaf) or inspect.isasyncgen(leaf):
        todo = "return a list of what it yields"
    elif inspect.isawaitable(leaf):
        todo = "write `with tidy(): await ...`, and keep(...) what is to live on"
    else:
        return
    if inspect.iscoroutine(leaf):
        leaf.close()  # nobody else will, and Python would warn of that
    raise ArgumentError(
        f"tidy: the result holds an unfinished {type(leaf).__name__}, which goes on after tidy "
        f"has freed what it needs; {todo}"
    )


def keep(tensor: Tensor) -> Tensor:
    """Let ``tensor`` outlive every ``tidy`` around this call; return it.

    Raises:
        ArgumentError: when it is no tensor.
        DisposedError, BackendClosedError: when its data is gone.

    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"keep: needs a tensor, got {type(tensor).__name__}")
    try:
        tensor._live()
    except (DisposedError, BackendClosedError) as error:
        raise type(error)(f"keep: {error}") from None
    scope = current_context().scope
    while scope is not None:
        scope.release(tensor)
        scope = scope.parent
    return tensor


def dispose(tree: Any) -> None:
    """Dispose of every tensor in nested dicts, lists, tuples and dataclasses.

    Those that were disposed before are passed over. Tensors elsewhere that share memory with
    one of these keep it.
    """
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor):
            leaf.dispose()
