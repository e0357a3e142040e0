"""Times on the page: bars of each kernel, and what a native kernel would gain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.reporting.roofline import (
    could_be,
    gains,
    hurried,
    least_seconds,
    taken,
    without_estimate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


_FULL: Final = 4.0  # powers of ten that fill a bar
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def speed(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the times as data of the page; None if nothing was measured."""
    figures = report.get("performance")
    if figures is None:
        return None
    limits = figures["limits"]
    return {
        "about": figures,
        "overhead": duration(limits["overhead"]),
        "bandwidth": {name: f"{one / 1e9:.1f}" for name, one in limits["bandwidth"].items()},
        "peak": f"{limits['peak'] / 1e9:.0f}",
        "gains": [
            {
                "kernel": gain.kernel,
                "call": gain.call,
                "size": gain.size,
                "seconds": duration(gain.seconds),
                "estimate": duration(gain.estimate.seconds),
                "source": _source(gain.estimate.source, figures["beside"]),
                "saved": duration(gain.saved),
                "times": _times(gain.times),
                "width": _width(gain.times),
            }
            for gain in gains(figures)
            if gain.estimate is not None
        ],
        "unknown": [
            {"kernel": gain.kernel, "call": gain.call, "seconds": duration(gain.seconds)}
            for gain in without_estimate(figures)
        ],
        "rows": [_line(row, figures) for row in figures["rows"] if taken(row) is not None],
        "left_out": [row for row in figures["rows"] if row["error"]],
    }


def _source(source: str, beside: str) -> str:
    return f"{beside}'s time" if source == "time" else source


def _line(row: Mapping[str, Any], performance: Mapping[str, Any]) -> dict[str, Any]:
    seconds, least = taken(row), least_seconds(row, performance["limits"])
    assert seconds is not None  # asked before
    estimate = could_be(row, performance)
    cpu = row["seconds"].get("cpu")
    decomposed = row["seconds"].get("decomposed") if "native" in row["seconds"] else None
    return {
        "kernel": row["kernel"],
        "call": row["call"],
        "size": row["size"],
        "how": row["how"],
        "seconds": duration(seconds),
        "rounds": row["rounds"],
        "hurried": hurried(row),
        "cpu": "" if cpu is None else _times(seconds / cpu),
        "decomposed": "" if decomposed is None else _times(decomposed / seconds),
        "least": _times(seconds / least),
        "estimate": "" if estimate is None else _times(seconds / estimate.seconds),
        "width": _width(seconds / least),
        "mark": None if cpu is None else _width(cpu / least),
    }


def _width(times: float) -> float:
    """Return the width of a bar in percent, which grows with the logarithm."""
    return round(100 * min(max(math.log10(max(times, 1e-9)) / _FULL, 0.0), 1.0), 2)


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2g}" if ratio < 10 else f"{ratio:.1f}"


def duration(seconds: float) -> str:
    """Return seconds as text with three digits: ``1.23 ms``."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"
