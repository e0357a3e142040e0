"""Leaving a ``with`` block even if an interrupt hits its ``__enter__`` or ``__exit__``.

Python checks for signals when a Python function starts, after calls of C functions, and when a
loop repeats. So an ``__exit__`` in Python may raise KeyboardInterrupt before its first line has
run, and an ``__enter__`` after its last effect; then nobody undoes that effect.

But a ``with`` statement looks ``__exit__`` up before it enters, and drops what it found when it is
left, in whichever way. ``Exit`` gives each statement an object of its own, and ``Watch`` calls a
function when that object dies. No traceback refers to it, and everything that runs then is C
code, which no signal interrupts. (docs/adr/0025)
"""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Exit", "Watch", "watch"]

B = TypeVar("B", bound="Any")


class Exit(Generic[B]):
    """Decorates ``__exit__``: a descriptor that returns a new function each time it is looked up.

    It puts a weak reference to that function into the block's attribute ``_exit``.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __get__(self, block: B | None, _owner: type[B] | None = None) -> Callable[..., None]:
        if block is None:
            return self._function
        found = partial(self._function, block)
        block._exit = ref(found)
        return found


class Watch(ref[Any]):
    """A weak reference that calls ``restore`` when its object dies."""

    restore: Callable[[], Any] = bool  # does nothing


_restore = methodcaller("restore")


def watch(block: Any, restore: Callable[[], Any]) -> Watch:
    """Call ``restore`` when the ``with`` statement of ``block`` ends, while the result lives.

    Without a ``with`` statement (``ExitStack``, or a program that calls ``__enter__`` itself)
    there is nothing to watch.
    """
    # No variable may hold the statement's object: a traceback would keep it alive.
    found = Watch(block._exit() or Exit, _restore)
    found.restore = restore
    return found
