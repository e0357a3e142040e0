"""The section of docs/support.md that says on which drivers opencl and webgpu run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_conformance.reporting.rendering.support import table

from .results import NO_DEVICE, NOT_INSTALLED, NOT_SET_UP, UNSOUND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .results import Result

NAME: Final = "drivers"
SHOWN: Final = 12  # failures of one driver
_HEAD: Final = """\
## Drivers of OpenCL and Vulkan

`make drivers` writes this section. It runs each driver in a separate environment and keeps the
data in `drivers.json`. Each row is for one driver on one processor; a new run replaces only that
row. Those of Vulkan serve the backend webgpu.

- **trial**: the verdict of the trial that the backend ([opencl](opencl.md), webgpu) runs before
  it opens a device. It refuses an **unsound** device, so that there is nothing to certify
- **level 2**, **level 3**: how many rows of the conformance suite passed and failed. Level 3
  covers as many kernels as the run had time for. **(vendor)**: not strictly, but by the
  [profile](conformance.md#profiles) `vendor`
- **watched**: the device is a simulator that finds accesses out of bounds, data races and wrong
  OpenCL calls. The numbers count the kernels without and with such findings
"""
_COLUMNS: Final = (
    "driver",
    "version",
    "device",
    "processor",
    "trial",
    "level 2",
    "level 3",
    "tensorplug",
    "date",
)


def section(results: Iterable[Result]) -> str:
    """Return the section in Markdown."""
    ordered = list(results)
    lines = [_HEAD, *table(_COLUMNS, [_row(result) for result in ordered])]
    for result in ordered:
        found = list(_told(result))
        if found:
            lines += ["", f"{result.title}, on {result.processor}:", ""]
            lines += [f"- {line}" for line in found]
    return "\n".join(lines) + "\n"


def _row(result: Result) -> list[str]:
    return [
        result.title,
        result.version or "·",
        result.device or "·",
        result.processor,
        _trial(result),
        _level_2(result),
        _level_3(result),
        result.tensorplug,
        result.date,
    ]


def _trial(result: Result) -> str:
    bad = (UNSOUND, NO_DEVICE, NOT_SET_UP)
    return f"**{result.trial}**" if result.trial in bad else result.trial


def _level_2(result: Result) -> str:
    counts = _counted(result.passed, result.failed)
    if result.watched:
        return f"watched: {counts}, {result.watched} calls"
    if not result.level:
        return "·"
    if not result.certified:
        return f"**not certified**: {counts}"
    return f"certified{' (vendor)' * (result.profile == 'vendor')}: {counts}"


def _level_3(result: Result) -> str:
    passed, failed, there = result.beyond
    return f"{_counted(passed, failed)} of {there}" if there else "·"


def _counted(passed: int, failed: int) -> str:
    return f"{passed} passed, **{failed} failed**" if failed else f"{passed} passed"


def _told(result: Result) -> Iterator[str]:
    """Yield remarks on a driver, besides its row."""
    if result.trial == NOT_INSTALLED:
        return
    yield from result.findings
    if result.refused and not result.findings:
        yield result.refused
    if result.note:
        yield result.note
    yield from _shortened(result.failures)


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"`{line}`" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        yield f"and {len(lines) - SHOWN} more in `drivers.json`"
