"""A lock that is free in a forked child.

A child of ``fork`` has one thread, the one that forked. A lock that another thread held at that
moment would never be released in the child. The child may use a new lock, because the guarded
state is consistent: registries are replaced as a whole, and all else is a cache.
"""

from __future__ import annotations

import os
import threading
from typing import Final, Self
from weakref import WeakSet

__all__ = ["Lock"]


class Lock:
    """A re-entrant lock, new in a forked child; a context manager."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


_all: Final[WeakSet[Lock]] = WeakSet()


def _renew() -> None:
    for lock in list(_all):
        lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_renew)
