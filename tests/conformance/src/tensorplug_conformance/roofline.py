"""What times say: how long a device needs at least, and where a native kernel would gain most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Gain", "gains", "least_seconds", "taken"]


@dataclass(frozen=True, slots=True)
class Gain:
    """A kernel that runs decomposed, and the seconds a call that a native one could save."""

    kernel: str
    call: str
    size: str
    seconds: float
    least: float

    @property
    def saved(self) -> float:
        """The seconds a call that a kernel at the device's limits would save."""
        return self.seconds - self.least

    @property
    def times(self) -> float:
        """How many times faster it would be."""
        return self.seconds / self.least


def least_seconds(row: Mapping[str, Any], limits: Mapping[str, Any]) -> float:
    """Return the time that the device needs at least: for the call, its bytes, its operations.

    This is the roofline model: bytes by the measured bandwidth, operations by the measured peak.
    """
    moved = row["moved"] / limits["bandwidth"][row["size"]]
    least: float = max(limits["overhead"], moved, row["work"] / limits["peak"])
    return least


def taken(row: Mapping[str, Any]) -> float | None:
    """Return the seconds of a call as the backend runs it; None if it does not."""
    seconds = row["seconds"]
    found: float | None = seconds.get("native", seconds.get("decomposed"))
    return found


def gains(performance: Mapping[str, Any]) -> list[Gain]:
    """Return what native kernels would save, the largest first: a list of things to do.

    Each kernel comes once, with the call that would gain most. A kernel that runs natively is not
    in it, nor a call that is already at the limit.
    """
    found = [
        Gain(
            row["kernel"],
            row["call"],
            row["size"],
            row["seconds"]["decomposed"],
            least_seconds(row, performance["limits"]),
        )
        for row in performance["rows"]
        if "decomposed" in row["seconds"] and "native" not in row["seconds"]
    ]
    found.sort(key=lambda gain: -gain.saved)
    best: dict[str, Gain] = {}
    for gain in found:
        if gain.saved > 0:
            best.setdefault(gain.kernel, gain)
    return list(best.values())
