"""Freeing tensors early, and counting the memory in use.

Correctness does not need this: a buffer is freed with its last tensor. ``tidy`` frees the
tensors of a scope at its end, which Python might keep longer.
"""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from tensorplug.dispatch.blocks import ContextBlock
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.exits import Exit
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError, BackendClosedError, DisposedError
from tensorplug.memory.accounting import DeviceMemory, Memory, memory
from tensorplug.tensors.tree import leaves

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tensorplug.dispatch.context import Context

__all__ = ["DeviceMemory", "Memory", "dispose", "keep", "memory", "tidy"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Tensor)


class Scope:
    """The tensors created while a ``tidy`` was the innermost one.

    Threads and tasks started inside share it. If one outlives it, or a generator is suspended
    inside, the nearest enclosing scope that is still open adopts the tensors they create.
    """

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.closed: bool = False
        self._members: dict[int, weakref.ref[Tensor]] = {}

    def nearest_open(self) -> Scope | None:
        """Return this scope, or if it is closed the nearest enclosing open one."""
        scope: Scope | None = self
        while scope is not None and scope.closed:
            scope = scope.parent
        return scope

    def adopt(self, tensor: Tensor) -> None:
        """Dispose of ``tensor`` at the end of this scope."""
        if not self.closed:
            self._members[id(tensor)] = weakref.ref(tensor)
            return
        scope = self.nearest_open()
        if scope is not None:
            scope.adopt(tensor)

    def release(self, tensor: Tensor) -> bool:
        """Let ``tensor`` outlive this scope; return whether it belonged to it."""
        member = self._members.get(id(tensor))
        # The id may belong to another tensor by now; the reference does not.
        if member is None or member() is not tensor:
            return False
        del self._members[id(tensor)]
        return True

    def close(self) -> None:
        """Dispose of the tensors that belong to this scope."""
        self.closed = True
        for member in list(self._members.values()):  # another thread may add one
            tensor = member()
            if tensor is not None:
                tensor.dispose()
        self._members.clear()


class _Tidy(ContextBlock):
    """The context manager form of ``tidy``."""

    __slots__ = ("_scope",)

    def __init__(self) -> None:
        super().__init__("tidy")
        self._scope: Scope | None = None

    def __enter__(self) -> Self:
        self._enter(self._close)
        return self

    @Exit
    def __exit__(self, *_error: object) -> None:
        try:
            self._close()
        finally:
            self._leave()

    def _close(self) -> None:
        if self._scope is not None:
            self._scope.close()

    def _derive(self, below: Context) -> Context:
        if self._scope is None or self._scope.closed:
            self._scope = Scope(below.scope)
        return below.replace(scope=self._scope)

    def hand_over(self, result: Any) -> None:
        """Give the tensors of ``result`` to the enclosing scope."""
        tensors, scope = leaves(result), self._scope
        assert scope is not None
        for leaf in tensors:
            _check_finished(leaf)
        for leaf in tensors:
            if isinstance(leaf, Tensor) and scope.release(leaf) and scope.parent:
                scope.parent.adopt(leaf)


@overload
def tidy(function: None = None) -> AbstractContextManager[object, None]: ...
@overload
def tidy(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
def tidy(function: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
    """Free the tensors that a function or block creates, except its result.

    ``tidy(f, *args, **kwargs)`` returns ``f(*args, **kwargs)``. It does not free the tensors in
    the result (in nested dicts, lists, tuples, named tuples and dataclasses, which may contain
    themselves) and those passed to ``keep``, even if they share memory with freed ones. ``with
    tidy():`` frees all tensors not passed to ``keep``. An exception inside frees all new tensors.
    Variables and older tensors are never freed.

    In ``async`` code use ``with tidy():``, also around ``await``: each task has its own scopes,
    but a task started inside shares that scope, which frees its tensors. A generator shares
    scopes with its consumer, so do not ``yield`` inside.

    Raises:
        ArgumentError: ``function`` is not a function, or is a coroutine or generator function;
            or the result contains a coroutine, another awaitable or a generator.
        RuntimeError: a scope is entered again before it was left.

    Examples:
        >>> tp.tidy(lambda x: tp.sum(x * x), tp.asarray([3.0, 4.0]))
        Tensor(25., dtype=float32, device='cpu')
        >>> with tp.tidy():
        ...     x = tp.ones(2)
        >>> x.is_disposed
        True

    """
    scope = _Tidy()
    if function is None:
        return scope
    if not callable(function):
        raise ArgumentError(f"tidy: function must be callable, got {type(function).__name__}")
    _check_synchronous(function)
    with scope:
        result = function(*args, **kwargs)
        scope.hand_over(result)
    return result


def _check_synchronous(function: Callable[..., Any]) -> None:
    name = repr(getattr(function, "__name__", function))
    if inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"tidy: {name} is a coroutine function, whose body runs after tidy has ended; "
            f"write `with tidy(): await ...`, and pass its results to keep(...)"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentError(
            f"tidy: {name} is a generator function, whose body runs after tidy has ended; "
            "pass a function that returns a list instead"
        )


def _check_finished(leaf: object) -> None:
    if inspect.isgenerator(leaf) or inspect.isasyncgen(leaf):
        advice = "return a list instead"
    elif inspect.isawaitable(leaf):
        advice = "write `with tidy(): await ...`, and pass its results to keep(...)"
    else:
        return
    if inspect.iscoroutine(leaf):
        leaf.close()  # else Python would warn that it was never awaited
    raise ArgumentError(
        f"tidy: the result contains an unfinished {type(leaf).__name__}, which needs tensors that "
        f"tidy frees; {advice}"
    )


def keep(tensor: T) -> T:
    """Let ``tensor`` outlive every enclosing ``tidy``; return it.

    Raises:
        ArgumentError: it is not a tensor.
        DisposedError, BackendClosedError: it was disposed, or its backend was closed.

    Examples:
        >>> with tp.tidy():
        ...     kept, freed = tp.keep(tp.ones(2)), tp.ones(2)
        >>> kept.is_disposed, freed.is_disposed
        (False, True)

    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"keep: tensor must be a Tensor, got {type(tensor).__name__}")
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

    Disposed tensors are skipped. Other tensors that share the memory keep it.

    ``tree``: a tensor, or any nesting of them.

    Examples:
        >>> x = tp.ones(3)
        >>> tp.dispose({"weights": [x], "rate": 0.1})
        >>> x.is_disposed
        True

    """
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor):
            leaf.dispose()
