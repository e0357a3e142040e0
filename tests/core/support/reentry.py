"""Calls of a function at any point of a program, as signal handlers and finalizers make them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from tests.core.support import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable

OCCASIONS: Final = ("signal", "finalizer")


def points_of(program: Callable[[], Any]) -> range:
    """Return the points of ``program`` once all that it caches exists."""
    program()
    return range(1, interrupts.count_points(program) + 1)


def call_during(
    program: Callable[[], Any], point: int, occasion: str, act: Callable[[], Any]
) -> bool:
    """Run ``program`` and call ``act`` at ``point``; return whether it has so many points.

    A signal handler runs after the call at that point, a finalizer (a callback of a weak
    reference, which drops exceptions) before it.
    """
    if occasion == "finalizer":
        with mock.patch.object(interrupts, "interrupt_main", act):
            return interrupts.interrupt(program, point).arrived
    before = signal.signal(signal.SIGINT, lambda *_: act())
    try:
        return interrupts.interrupt(program, point).arrived
    finally:
        signal.signal(signal.SIGINT, before)
