"""Ctrl-C ends a loop where nothing is half done."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import FrameType


class Interrupts:
    """A context in which the first Ctrl-C is remembered, and a second one raises as usual.

    Python allows handlers of signals in the main thread alone: in others this changes nothing, and
    Ctrl-C does not reach them. A program's own handler of SIGINT stays, too.
    """

    def __init__(self) -> None:
        self._seen = False
        self._replaced = False

    def __enter__(self) -> Self:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._replaced = True
            signal.signal(signal.SIGINT, self._see)
        return self

    def __exit__(self, *_: object) -> None:
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def seen(self) -> bool:
        """Return whether there was a Ctrl-C."""
        return self._seen

    def _see(self, number: int, frame: FrameType | None) -> None:
        if self._seen:
            signal.default_int_handler(number, frame)
        self._seen = True
