"""Pressing Ctrl-C at any point of a program, again and again in the same way.

A trace function counts the points at which Python checks for signals, and sends one at the chosen
point. It must not arrive in the trace function itself. So that function leaves behind an object
that dies when it returns, and the death of the object, in C, sends the signal. Python then raises
KeyboardInterrupt where it always does: when a function starts, after a call, when a loop repeats.
"""

from __future__ import annotations

import dis
import signal
import sys
from _thread import interrupt_main
from contextlib import contextmanager
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

CHECKING = ("CALL", "JUMP_BACKWARD")  # prefixes of instructions that check for signals


class Outcome(NamedTuple):
    """``arrived``: the program had that many points. ``raised``: it saw the KeyboardInterrupt."""

    arrived: bool
    raised: bool


class _Fuse(ref[Any]):
    __slots__ = ("trip",)


class _Spark:
    pass


_trip = methodcaller("trip")
_points: dict[CodeType, frozenset[int]] = {}


def _points_of(code: CodeType) -> frozenset[int]:
    result = _points.get(code)
    if result is None:
        names = ((each.offset, each.opname) for each in dis.get_instructions(code))
        result = frozenset(at for at, name in names if name.startswith(CHECKING))
        _points[code] = result
    return result


class _Tracer:
    """Calls ``act`` at point number ``at``, and stops."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0
        self._fuse: _Fuse

    @property
    def arrived(self) -> bool:
        return self.count >= self.at

    def trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event != "opcode" or frame.f_lasti not in _points_of(frame.f_code):
            return self.trace
        self.count += 1
        if self.count == self.at:
            sys.settrace(None)
            spark = _Spark()  # dies when this function has returned
            self._fuse = _Fuse(spark, _trip)
            self._fuse.trip = interrupt_main
        return self.trace


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT, as Python does by default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt(program: Callable[[], object], at: int) -> Outcome:
    """Run ``program`` in the main thread with a SIGINT at its point number ``at``, from 1."""
    tracer, tracing = _Tracer(at), sys.gettrace()
    try:
        sys.settrace(tracer.trace)
        program()
        sys.settrace(tracing)
        for _ in range(3):
            pass  # a signal that arrived at the last point is delivered here
    except KeyboardInterrupt:
        return Outcome(arrived=True, raised=True)
    finally:
        sys.settrace(tracing)
    return Outcome(tracer.arrived, raised=False)


def count_points(program: Callable[[], object]) -> int:
    """Return at how many points Python checks for signals in a run of ``program``."""
    tracer, tracing = _Tracer(sys.maxsize), sys.gettrace()
    try:
        sys.settrace(tracer.trace)
        program()
    finally:
        sys.settrace(tracing)
    return tracer.count
