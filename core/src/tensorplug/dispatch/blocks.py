"""Blocks that change the context: the base class of ``use_backend``, ``tidy`` and others."""

from __future__ import annotations

from contextvars import ContextVar, Token
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.context import current_context, entered, innermost, variable
from tensorplug.dispatch.exits import Watch, watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.context import Context


_here: Final[ContextVar[None]] = ContextVar("tensorplug.here")  # only its tokens matter


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
            entry.token = variable.set(context)
            if self._exit is not None and self._exit() is not None:
                self._watch = self._exit
                self._watch.restore = partial(variable.reset, entry.token)
                self._ending = None if ending is None else watch(self._exit(), ending)
            self._entry = entry
        except BaseException:
            variable.set(below)
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
            variable.set(entered(current.below))
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


def _remove(entry: _Entry, current: Context) -> None:
    """Undo the change of a block that is not the innermost one, or was entered elsewhere."""
    # A thread that still has its context finds no plan there, checks, and leaves it.
    entry.context.plans = {}
    above: list[_Entry] = []
    context_of_block: Context | None = current
    while context_of_block is not None and context_of_block.entry is not entry:
        if context_of_block.entry is not None:
            above.append(context_of_block.entry)
        context_of_block = context_of_block.below
    if context_of_block is None:
        return
    context = entered(context_of_block.below)
    for other in reversed(above):
        if not other.left:
            changed = other.block._derive(context)
            changed.below, changed.entry = context, other
            context = other.context = changed
    variable.set(context)
