"""Certify opencl and webgpu on every driver of ``drivers.py``, and write the matrix.

``python -m tests.drivers``, in the root of the repository. The exit code is 1 if a driver that the
backend opens fails anything, or if a watched kernel does something wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tensorplug_conformance.reporting.rendering.sections import inserted

from . import matrix, results
from .certifying import Plan, certify
from .drivers import DRIVERS
from .environments import ROOT
from .inside.about_opencl import processor_name

if TYPE_CHECKING:
    from .results import Result

PAGE = ROOT / "docs" / "support.md"
DATA = ROOT / "docs" / "drivers.json"


def main() -> int:
    options = _parser().parse_args()
    began = time.monotonic()
    found = []
    for driver in DRIVERS:
        if options.only and driver.name not in options.only:
            continue

        def say(text: str, name: str = driver.name) -> None:
            print(f"{time.monotonic() - began:6.0f} s  {name}: {text}", flush=True)

        plan = Plan(
            options.folder.resolve(),
            options.level,
            options.limit * 60,
            options.minutes * 60,
            options.jobs,
            processor_name(),
            say,
        )
        result = certify(driver, plan)
        say(summary(result))
        found.append(result)
        if not options.dry:
            write(found)
    return 1 if any(result.wrong for result in found) else 0


def write(found: list[Result]) -> None:
    """Add results to the data, and write the section of the page from them."""
    everything = results.joined(results.read(DATA), found)
    results.write(DATA, everything)
    page = inserted(PAGE.read_text("utf-8"), matrix.NAME, matrix.section(everything))
    PAGE.write_text(page, "utf-8")


def summary(result: Result) -> str:
    """Return the result in a few lines, for the terminal."""
    told = [result.note, *result.findings] if result.findings else [result.note, result.refused]
    lines = [result.trial, *filter(None, told)]
    if result.level or result.watched:
        lines.append(f"{result.passed} passed, {result.failed} failed")
    if result.beyond[2]:
        lines.append("of level 3: {} passed, {} failed, of {}".format(*result.beyond))
    return "\n    ".join([*lines, *result.failures])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.drivers", description=__doc__)
    names = [driver.name for driver in DRIVERS]
    parser.add_argument("--only", nargs="*", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--level", type=int, choices=(0, 2, 3), default=2, help="0: trials alone")
    parser.add_argument(
        "--limit", type=float, default=30, help="minutes that one step of a driver may take"
    )
    parser.add_argument("--minutes", type=float, default=20, help="minutes for a driver's level 3")
    parser.add_argument("--jobs", type=int, default=0, help="processes of the conformance suite")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "drivers")
    parser.add_argument("--dry", action="store_true", help="write no page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
