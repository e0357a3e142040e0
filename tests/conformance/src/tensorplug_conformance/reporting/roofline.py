"""What times say: how long a device needs at least, and where a native kernel would gain most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


SIZES: Final = {"small": 64, "medium": 1 << 14, "large": 1 << 20}
"""Elements of the largest array of a call: they show its cost, the caches, the memory."""

ROUNDS: Final = 3
"""Rounds of a call without which its time is less certain."""

_MOVED: Final = {name: 8 * elements for name, elements in SIZES.items()}
"""Bytes that Neg of so many float32 moves, by which the bandwidth is measured."""

_NATIVE: Final = ("native", "widened")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The seconds that a call of a native kernel could take, and what they were reckoned from."""

    seconds: float
    source: Literal["time", "operations"]


@dataclass(frozen=True, slots=True)
class Gain:
    """A call that runs decomposed, and what a native one could take; None: nobody knows."""

    kernel: str
    call: str
    size: str
    seconds: float
    estimate: Estimate | None

    @property
    def saved(self) -> float:
        """The seconds a call that such a kernel would save."""
        return 0.0 if self.estimate is None else self.seconds - self.estimate.seconds

    @property
    def times(self) -> float:
        """How many times faster it would be."""
        return 1.0 if self.estimate is None else self.seconds / self.estimate.seconds


def least_seconds(row: Mapping[str, Any], limits: Mapping[str, Any]) -> float:
    """Return the time that the device needs at least: for the call, its bytes, its operations.

    This is the roofline model: bytes by the bandwidth that was measured with about so many of
    them, operations by the measured peak.
    """
    near = min(_MOVED, key=lambda name: abs(math.log(max(row["moved"], 1) / _MOVED[name])))
    moved = row["moved"] / limits["bandwidth"][near]
    least: float = max(limits["overhead"], moved, row["work"] / limits["peak"])
    return least


def could_be(row: Mapping[str, Any], performance: Mapping[str, Any]) -> Estimate | None:
    """Return what a native kernel could take for this call; None if nothing says so.

    Where the other backend has a native kernel, its time beyond the cost of a call is scaled by
    the speeds of the two devices: by their peaks where the operations are known, else by their
    bandwidths of large arrays. Without one, the operations that are known say it. Bytes alone do
    not: they say nothing of a sort, a factor of a matrix, or a loop over steps. An estimate is
    never below ``least_seconds``.
    """
    limits, beside = performance["limits"], performance["beside_limits"]
    least = least_seconds(row, limits)
    theirs = row["seconds"].get(performance["beside"])
    if beside is not None and theirs is not None and row["beside_how"] in _NATIVE:
        slower = (
            beside["peak"] / limits["peak"]
            if row["work"]
            else beside["bandwidth"]["large"] / limits["bandwidth"]["large"]
        )
        scaled = limits["overhead"] + max(theirs - beside["overhead"], 0.0) * slower
        return Estimate(max(scaled, least), "time")
    return Estimate(least, "operations") if row["work"] else None


def taken(row: Mapping[str, Any]) -> float | None:
    """Return the seconds of a call as the backend runs it; None if it does not."""
    seconds = row["seconds"]
    fastest: float | None = seconds.get("native", seconds.get("decomposed"))
    return fastest


def hurried(row: Mapping[str, Any]) -> bool:
    """Return whether a call was timed less often than others, as it takes long."""
    return bool(row["seconds"]) and row["rounds"] < ROUNDS


def gains(performance: Mapping[str, Any]) -> list[Gain]:
    """Return what native kernels would save, the largest first: a list of things to do.

    Each kernel comes once, with the call that would gain most. A kernel that runs natively is not
    in it, nor a call that is as fast as it could be, nor one without an estimate.
    """
    saving = (gain for gain in _decomposed(performance) if gain.saved > 0)
    return _first_of_each(sorted(saving, key=lambda gain: -gain.saved))


def without_estimate(performance: Mapping[str, Any]) -> list[Gain]:
    """Return the kernels that run decomposed of which nothing says what they could take.

    The slowest first; each kernel comes once, with its longest call.
    """
    slowest = sorted(_decomposed(performance), key=lambda gain: -gain.seconds)
    estimated = {gain.kernel for gain in slowest if gain.estimate is not None}
    return _first_of_each(gain for gain in slowest if gain.kernel not in estimated)


def _first_of_each(ordered: Iterable[Gain]) -> list[Gain]:
    """Return the first gain of each kernel, in the same order."""
    first: dict[str, Gain] = {}
    for gain in ordered:
        first.setdefault(gain.kernel, gain)
    return list(first.values())


def _decomposed(performance: Mapping[str, Any]) -> Iterator[Gain]:
    for row in performance["rows"]:
        if "decomposed" in row["seconds"] and "native" not in row["seconds"]:
            yield Gain(
                row["kernel"],
                row["call"],
                row["size"],
                row["seconds"]["decomposed"],
                could_be(row, performance),
            )
