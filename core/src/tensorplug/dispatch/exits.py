"""Leaving a ``with`` block even if an interrupt hits its ``__enter__`` or ``__exit__``.

Python checks for signals when a Python function starts, after calls of C functions, and when a
loop repeats. So an ``__exit__`` in Python may raise KeyboardInterrupt before its first line has
run, and an ``__enter__`` after its last effect; then nobody undoes that effect.

But a ``with`` statement looks ``__exit__`` up before it enters the block, and drops what it found
when the block ends, in whatever way. ``Exit`` gives each statement an object of its own, and
``Watch`` calls a function when that object dies. No traceback refers to it, and everything that
runs then is C code, which no signal interrupts. (docs/adr/0025)
"""

from __future__ import annotations

from operator import methodcaller
from types import MethodType
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable


class Watch(ref[Any]):
    """A weak reference that calls ``restore`` when its object dies."""

    __slots__ = ("restore",)

    restore: Callable[[], Any]


_restore = methodcaller("restore")


class Exit:
    """Decorates ``__exit__``: a descriptor that returns a new method each time it is looked up.

    It puts a ``Watch`` of that method, which does nothing yet, into the block's ``_exit``. For
    ``ExitStack``, and a program that calls ``__enter__`` itself, ``_exit`` is None or long dead.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __get__(self, block: Any, _owner: type[Any] | None = None) -> Callable[..., None]:
        if block is None:
            return self._function
        method = MethodType(self._function, block)
        watcher = block._exit = Watch(method, _restore)
        watcher.restore = bool
        return method


def watch(method: Callable[..., None] | None, restore: Callable[[], Any]) -> Watch | None:
    """Call ``restore`` when ``method`` dies, while the result lives; None without a method.

    The caller must not put the method into a variable: a traceback would keep it alive.
    """
    if method is None:
        return None
    watcher = Watch(method, _restore)
    watcher.restore = restore
    return watcher
