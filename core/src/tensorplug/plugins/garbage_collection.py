"""The garbage collector, paused while many modules are imported.

Objects of modules stay alive, but the collector scans them all again and again as their number
grows. That takes a sixth of the time in which a backend opens.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from tensorplug.dispatch.exits import Exit

if TYPE_CHECKING:
    from tensorplug.dispatch.exits import Watch


class paused:  # noqa: N801  # used as a function: ``with paused():``
    """Disable automatic collection in all threads inside a ``with`` block."""

    __slots__ = ("_exit", "_was_enabled")

    def __init__(self) -> None:
        self._exit: Watch | None = None
        self._was_enabled = False  # if not, by the program itself, or by an outer pause

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        if self._was_enabled:
            if self._exit is not None:
                self._exit.restore = gc.enable
            gc.disable()

    @Exit
    def __exit__(self, *_error: object) -> None:
        if self._was_enabled:
            gc.enable()
