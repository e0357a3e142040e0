"""The peak rates of devices: from vendors' data sheets, or from their units and clocks.

Rates are those of the vector units, without matrix units (tensor cores), which OpenCL C does not
reach. Memory in GB/s, arithmetic in GFLOP/s, a fused multiplication and addition counted as two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


NVIDIA: Final = "NVIDIA's data sheet"
WHITE_PAPER: Final = "NVIDIA's data sheet and architecture white paper"
AMD: Final = "AMD's data sheet"
HALF_OF_BOARD: Final = (
    "AMD's data sheet, half of a board: OpenCL shows its two dies as two devices"
)
INTEL: Final = "Intel's product page"


@dataclass(frozen=True)
class Peak:
    """The peak rates of a device: ``memory`` in GB/s, ``flops`` by dtype in GFLOP/s.

    ``source`` is the origin of these numbers.
    """

    memory: float | None = None
    flops: Mapping[str, float] = field(default_factory=dict)
    source: str = ""


def _row(
    pattern: str,
    memory: float,
    float32: float,
    float64: float | None,
    float16: float | None,
    source: str,
) -> tuple[re.Pattern[str], Peak]:
    """Return a row of the table from TFLOP/s."""
    rates = {"float32": float32, "float64": float64, "float16": float16}
    flops = {dtype: rate * 1000 for dtype, rate in rates.items() if rate is not None}
    return re.compile(pattern, re.IGNORECASE), Peak(memory, flops, source)


# The first row whose pattern is found in the device's name is taken: special ones come first.
#    pattern                    GB/s  TFLOP/s: float32, float64, float16
KNOWN: Final = (
    _row(r"\bB200\b", 8000, 75, 37, None, NVIDIA),
    _row(r"\bGH200\b.*144", 4900, 67, 34, 134, WHITE_PAPER),
    _row(r"\bGH200\b", 4000, 67, 34, 134, WHITE_PAPER),
    _row(r"\bH200 NVL\b", 4800, 60, 30, None, NVIDIA),
    _row(r"\bH200\b", 4800, 67, 34, 134, WHITE_PAPER),
    _row(r"\bH100 NVL\b", 3900, 60, 30, None, NVIDIA),
    _row(r"\bH100 PCIe\b", 2000, 51, 26, 102, WHITE_PAPER),
    _row(r"\bH100\b", 3350, 67, 34, 134, WHITE_PAPER),
    _row(r"\bA100-SXM4-80GB\b", 2039, 19.5, 9.7, 78, WHITE_PAPER),
    _row(r"\bA100 80GB\b", 1935, 19.5, 9.7, 78, WHITE_PAPER),
    _row(r"\bA100\b", 1555, 19.5, 9.7, 78, WHITE_PAPER),
    _row(r"\bA30\b", 933, 10.3, 5.2, None, NVIDIA),
    _row(r"\bA10\b", 600, 31.2, None, None, NVIDIA),
    _row(r"\bA40\b", 696, 37.4, None, None, NVIDIA),
    _row(r"\bL40S\b", 864, 91.6, None, None, NVIDIA),
    _row(r"\bL40\b", 864, 90.5, None, None, NVIDIA),
    _row(r"\bL4\b", 300, 30.3, None, None, NVIDIA),
    _row(r"\bV100\b.*PCIE", 900, 14, 7, None, NVIDIA),
    _row(r"\bV100\b", 900, 15.7, 7.8, 31.4, WHITE_PAPER),
    _row(r"\bT4\b", 320, 8.1, None, None, NVIDIA),
    _row(r"\bRTX 6000 Ada\b", 960, 91.1, None, None, NVIDIA),
    _row(r"\bRTX A6000\b", 768, 38.7, None, None, NVIDIA),
    _row(r"\bRTX 5090\b(?! (D|Laptop))", 1792, 104.8, 1.64, 104.8, WHITE_PAPER),
    _row(r"\bRTX 4090\b(?! (D|Laptop))", 1008, 82.6, 1.29, 82.6, WHITE_PAPER),
    _row(r"\bRTX 4080\b(?! (SUPER|Laptop))", 716.8, 48.7, 0.76, 48.7, WHITE_PAPER),
    _row(r"\bRTX 3090\b(?! Ti)", 936, 35.6, 0.56, 35.6, WHITE_PAPER),
    _row(r"\bRTX 3080\b(?! (Ti|Laptop))", 760, 29.8, 0.47, 29.8, WHITE_PAPER),
    _row(r"\bMI325X\b", 6000, 163.4, 81.7, None, AMD),
    _row(r"\bMI300X\b", 5300, 163.4, 81.7, None, AMD),
    _row(r"\bMI300A\b", 5300, 122.6, 61.3, None, AMD),
    _row(r"\bMI250X\b", 1638.4, 23.95, 23.95, None, HALF_OF_BOARD),
    _row(r"\bMI250\b", 1638.4, 22.65, 22.65, None, HALF_OF_BOARD),
    _row(r"\bMI210\b", 1638.4, 22.6, 22.6, None, AMD),
    _row(r"\bMI100\b", 1228.8, 23.1, 11.5, None, AMD),
    _row(r"\bRX 7900 XTX\b", 960, 61.4, None, 122.8, AMD),
    _row(r"\bData Center GPU Max 1550\b", 3276.8, 52.4, 52.4, None, INTEL),
    _row(r"\bData Center GPU Max 1100\b", 1228.8, 22.2, 22.2, None, INTEL),
)

# Lanes for float32 of one compute unit, by the device's own facts.
_NVIDIA_LANES: Final = {(6, 0): 64, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
_NVIDIA_OTHERS: Final = 128
_INTEL_LANES: Final = 8  # of an execution unit, which OpenCL calls a compute unit


def lanes(facts: Mapping[str, Any]) -> int | None:
    """Return the lanes for float32 of one compute unit; None if unknown."""
    if facts.get("kind") != "GPU":
        return None  # a core's vectors, and how many it takes at once, no driver tells
    capability = facts.get("compute capability")
    if capability:
        major, _, minor = str(capability).partition(".")
        return _NVIDIA_LANES.get((int(major), int(minor or 0)), _NVIDIA_OTHERS)
    per_unit, width = facts.get("SIMDs per compute unit"), facts.get("SIMD width")
    if per_unit and width:
        return int(per_unit) * int(width)
    return _INTEL_LANES if "intel" in str(facts.get("vendor", "")).lower() else None


def of_units(facts: Mapping[str, Any]) -> Peak | None:
    """Return the peak by units, clock and lanes, for float32; None if one is unknown."""
    units, clock, width = facts.get("compute units"), facts.get("clock MHz"), lanes(facts)
    if not (units and clock and width):
        return None
    source = f"{units} compute units x {clock} MHz x {width} lanes x 2"
    return Peak(None, {"float32": units * clock * width * 2 / 1000}, source)


def peak_of(facts: Mapping[str, Any]) -> Peak | None:
    """Return the peak of the device with these facts, as far as it is known."""
    named = f"{facts.get('board', '')} {facts.get('hardware', '')}"
    if facts.get("kind") == "GPU":
        for pattern, peak in KNOWN:
            if pattern.search(named):
                return peak
    return of_units(facts)


def share(rate: float | None, of: float | None) -> float | None:
    """Return ``rate`` as a part of ``of``; None if either is unknown."""
    return rate / of if rate is not None and of else None
