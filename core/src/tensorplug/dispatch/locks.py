"""Locks that an interrupt cannot leave held, and that are free in a forked child.

``with lock`` must acquire and release in C. Python delivers a KeyboardInterrupt between the
instructions of Python code, so a lock class with an ``__enter__`` in Python may be interrupted
after it has acquired, and nobody releases it (docs/adr/0025).

A child of ``fork`` has one thread, the one that forked. A lock that another thread held at that
moment would never be released in the child. The child may use it as if it were new, because the
guarded state is consistent: registries are replaced as a whole, and all else is a cache.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.weak import WeakObjects

if TYPE_CHECKING:
    from threading import RLock


_all: Final[WeakObjects[Any]] = WeakObjects()


def Lock() -> RLock:  # noqa: N802  # named like threading.RLock, which is a function, too
    """Return a re-entrant lock. A forked child holds it only if the forking thread did."""
    lock = threading.RLock()
    _all.add(lock)
    return lock


def all_locks() -> list[RLock]:
    """Return the live locks that ``Lock`` has made."""
    return list(_all)


def _renew() -> None:
    for lock in _all:
        if not lock._is_owned():  # the thread that forked goes on, and will release it
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_renew)
