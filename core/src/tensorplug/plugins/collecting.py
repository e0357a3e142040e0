"""The garbage collector, paused while much is imported.

What modules make stays, but the collector looks through all of it again and again as it grows:
a sixth of the time that opening a backend takes.
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
    """Let nothing be collected meanwhile, in any thread, unless it is asked for."""
    if not gc.isenabled():  # the program's own wish, or a pause around this one
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
