"""The code that pyopencl generates to call kernels: kept in memory, not in its file on disk.

pyopencl opens a database in the user's home when it makes the first kernel, asks it for each new
kernel, and fails if there is no such place. Its lock is not re-entrant either: a signal handler or
a finalizer that makes a kernel while its own thread makes one would wait forever. Generating the
code takes a millisecond for each number of arguments.
"""

from __future__ import annotations

from typing import Any, Final

import pyopencl as cl

from tensorplug.plugin import Lock

_MOST_KEPT: Final = 1024  # pieces of code; this backend needs one for each number of arguments
_SWITCH: Final = "_PYOPENCL_NO_CACHE"


class _Generated:
    """Takes the place of pyopencl's cache; steps of a dictionary are atomic."""

    def __init__(self) -> None:
        self._kept: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._kept[key]
        except TypeError:  # a program of the user's has described arguments by lists
            raise KeyError(key) from None

    def store_if_not_present(self, key: Any, value: Any) -> None:
        """Keep ``value``, if its key can be looked up."""
        try:
            self._kept.setdefault(key, value)
        except TypeError:
            return
        if len(self._kept) > _MOST_KEPT:
            self._kept.pop(next(iter(self._kept)), None)


_lock: Final = Lock()


def keep_in_memory() -> None:
    """Keep pyopencl's generated code in memory, in the whole process."""
    with _lock:
        before = getattr(cl, _SWITCH, False)
        try:
            setattr(cl, _SWITCH, True)  # read when the module is imported, and at each use
            from pyopencl import invoker
        finally:
            setattr(cl, _SWITCH, before)
        module: Any = invoker
        if not isinstance(getattr(module, "invoker_cache", None), _Generated):
            module.invoker_cache = _Generated()
