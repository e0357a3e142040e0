"""Times workloads, library against library, in interleaved rounds.

An absolute time means little on a shared machine, so each round runs every contender once, in
an order that rotates, and the median of the *ratios* within rounds is reported: noise that
lasts longer than a round affects all of them alike.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], object]

LEAST = 3  # rounds at least


@dataclass(frozen=True)
class Workload:
    """One task, written for several libraries.

    ``contenders``: name -> a call that does the work and waits for its result. ``baseline``:
    whose time the others are divided by.
    """

    name: str
    baseline: str
    contenders: dict[str, Call]
    notes: str = ""


@dataclass
class Measurement:
    """Seconds per call, one entry per round, by contender."""

    workload: Workload
    calls: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, name: str) -> float:
        """Return the median seconds per call."""
        return statistics.median(self.seconds[name])

    def least(self, name: str) -> float:
        """Return the seconds per call of the best round."""
        return min(self.seconds[name])

    def ratio(self, name: str, to: str | None = None) -> float:
        """Return the median over rounds of the time of ``name`` divided by that of ``to``."""
        base = self.seconds[to or self.workload.baseline]
        pairs = zip(self.seconds[name], base, strict=True)
        return statistics.median(own / other for own, other in pairs)

    def excess(self, name: str) -> float:
        """Return the median over rounds of the seconds above the baseline's."""
        base = self.seconds[self.workload.baseline]
        return statistics.median(
            own - other for own, other in zip(self.seconds[name], base, strict=True)
        )


def measure(
    workload: Workload,
    *,
    rounds: int = 15,
    round_seconds: float = 0.05,
    limit: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> Measurement:
    """Run ``workload`` in interleaved rounds.

    The number of calls per round is the same for all contenders: as many as the slowest makes
    in ``round_seconds`` by ``clock``. After ``limit`` seconds no more rounds begin, but three
    always run.
    """
    began = time.monotonic()
    slowest = max(_once(call, clock) for call in workload.contenders.values())
    calls = max(1, int(round_seconds / slowest))
    result = Measurement(workload, calls, {name: [] for name in workload.contenders})
    names = list(workload.contenders)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            if turn >= LEAST and time.monotonic() - began > limit:
                break
            for at in range(len(names)):
                name = names[(turn + at) % len(names)]
                result.seconds[name].append(_timed(workload.contenders[name], calls, clock))
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return result


def _once(call: Call, clock: Callable[[], float]) -> float:
    """Warm up (compilation, caches) and return the seconds of a later call."""
    for _ in range(3):
        call()
    return max(_timed(call, 1, clock), 1e-7)


def _timed(call: Call, calls: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(calls):
        call()
    return (clock() - start) / calls
