"""Whether repeated calls of a kernel leave anything behind: results, inputs, scratch memory."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.case import flat

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Backend, CountsBuffers, KernelSpec
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.session import Session


CALLS: Final = 4
"""One object may stay, or two: a constant that is kept for the next call is not a leak."""


def shows_leaks(case: Case) -> bool:
    """Return whether a case can show leaks: it succeeds, and has inputs or outputs."""
    return not case.refused and all(getattr(operand, "size", 1) for operand in case.inputs)


def left_behind(session: Session, spec: KernelSpec, case: Case) -> str:
    """Return what stays alive after inputs and results are released; empty if nothing does."""

    def call() -> list[weakref.ref[Any]]:
        operands = session.operands(case)
        results = session.call(spec, operands, case.attributes)
        return [
            part for result in (*flat(operands), *results) for part in _watched(result._buffer)
        ]

    session.call(spec, session.operands(case), case.attributes)  # plans and pools are made
    watched = [call() for _ in range(CALLS)]
    session.device.backend.synchronize()
    # Of each input and output: the buffers of the calls, and how many of them still live.
    for number, item in enumerate(zip(*watched, strict=True)):
        if _alive(item) == CALLS and _alive(item, collect=True) == CALLS:
            return f"the buffers of {CALLS} calls are all kept (input or output {number}): a leak"
    return _counted(session, call)


def _watched(buffer: Any) -> list[weakref.ref[Any]]:
    try:
        return [weakref.ref(buffer)]
    except (
        TypeError
    ):  # such objects cannot be watched; the backend's own counts help where there are any
        return []


def _alive(references: tuple[weakref.ref[Any], ...], *, collect: bool = False) -> int:
    if collect:
        gc.collect()
    return len({id(value) for reference in references if (value := reference()) is not None})


def _counted(session: Session, call: Callable[[], object]) -> str:
    """Return the leak that the backend's own figures show; empty if none."""
    backend = session.device.backend
    counter = session.device.capabilities.counts_buffers
    if counter is not None:
        try:
            return _grown(backend, counter, call)
        finally:
            counter.stop_counting()
    backend.synchronize()
    before = dict(backend.memory())
    growing = set(before)
    for _ in range(2 * CALLS):
        call()
        backend.synchronize()
        now = dict(backend.memory())
        growing = {name for name in growing if now.get(name, 0) > before[name]}
        if not growing:
            return ""
        before = now
    return f"memory()[{min(growing)!r}] grows with every call: a leak"


def _grown(backend: Backend, counter: CountsBuffers, call: Callable[[], object]) -> str:
    backend.synchronize()  # it may be freeing what was released before
    before = counter.live_buffers()
    for _ in range(CALLS):
        call()
    if counter.live_buffers() - before < CALLS:
        return ""
    gc.collect()
    backend.synchronize()
    grown = counter.live_buffers() - before
    return f"{grown} more buffers after {CALLS} calls: a leak" if grown >= CALLS else ""
