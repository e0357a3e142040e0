"""The garbage collector, paused while many modules are imported.

Objects of modules stay alive, but the collector scans them all again and again as their number
grows. That takes a sixth of the time in which a backend opens.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["paused"]


@contextmanager
def paused() -> Iterator[None]:
    """Disable automatic collection in all threads."""
    if not gc.isenabled():  # by the program itself, or by an outer pause
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
