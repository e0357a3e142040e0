"""Levels of the conformance suite, each by itself: ``conformance.py --levels 0 1 2``.

The suite's own command runs all levels up to one, and writes its report at the end. Here each row
is reported when it is done, no row runs twice, and the report is written once all levels up to one
are complete. Rows of the common dtypes come first, for a run that is stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from telling import tell

from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import Selection, entries, fingerprint
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.reporting import report
from tensorplug_conformance.running.certify import items_of
from tensorplug_conformance.running.opening import NotOpenedError, check_opens
from tensorplug_conformance.running.supervisor import Limits, supervise
from tensorplug_conformance.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.verdicts import Item

ALONE: Final = (1, 4)  # levels that measure memory and threads: one process
DTYPES: Final = ("float32", "int32", "float16", "bool", "float64", "int64", "complex64")
SEED: Final = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--levels", type=int, nargs="+", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--item-limit", type=float, default=Limits().item)
    parser.add_argument("--folder", type=Path, required=True, help="of outcomes and report")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    target, limits = Target(options.device), Limits(options.item_limit)
    try:
        check_opens(target, limits)
    except NotOpenedError as error:
        tell("error", why=str(error))
        print(error)
        return 2
    began, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    for level in options.levels:
        _run(level, target, limits, options.jobs, options.folder)
    return _report(max(options.levels), options.folder, began, time.monotonic() - clock)


def _run(level: int, target: Target, limits: Limits, jobs: int, folder: Path) -> None:
    """Run the items of one level; keep the outcomes in a separate file."""
    items, _ = items_of(level, entries(extension_tables()), Selection())
    tell("level", level=level, items=len(items))
    print(f"level {level}: {len(items)} rows and checks", flush=True)
    backend: dict[str, Any] = {"name": target.backend}

    def heard(outcome: Outcome) -> None:
        line = {"item": outcome.item, "verdict": outcome.verdict, "error": outcome.error}
        tell("outcome", level=level, **line)
        status = outcome.verdict["status"] if outcome.verdict else outcome.error
        print(*outcome.item[1:], status, flush=True)

    outcomes = supervise(
        target,
        sorted(items, key=_rank),
        SEED,
        limits,
        heard,
        introduced=backend.update,
        jobs=1 if level in ALONE else jobs,
    )
    kept = [(outcome.item, outcome.verdict, outcome.error) for outcome in outcomes]
    _file(folder, level).write_text(json.dumps({"backend": backend, "outcomes": kept}))


def _rank(item: Item) -> int:
    return DTYPES.index(item[2]) if item[0] == "row" and item[2] in DTYPES else len(DTYPES)


def _file(folder: Path, level: int) -> Path:
    return folder / f"level{level}.json"


def _report(level: int, folder: Path, began: str, seconds: float) -> int:
    """Write the report of all levels up to ``level`` if they are complete; 1 if it is not good."""
    known = entries(extension_tables())
    outcomes: list[Outcome] = []
    rows = []
    backend: dict[str, Any] = {}
    for index in range(level + 1):
        if not _file(folder, index).exists():
            print(f"no report: level {index} is not complete")
            return 0
        kept = json.loads(_file(folder, index).read_text())
        backend |= kept["backend"]
        items, some = items_of(index, known, Selection())
        rows += some
        outcomes += _in_order(items, kept["outcomes"])
    cases, digest = fingerprint(rows, known, SEED)
    found = report.assemble(
        suite=SUITE_VERSION,
        backend=backend,
        level=level,
        seed=SEED,
        draw=0,  # as of every ``Target`` above
        examples=0,
        selection=Selection(),
        denominator={
            "rows": len(rows),
            "cases": cases,
            "sha256": digest,
            "kernels": sorted(known),
        },
        outcomes=outcomes,
        seconds=seconds,
        started=began,
    )
    report.write(found, folder)
    tell("report", level=level, conformant=found["conformant"], blocked_by=found["blocked_by"])
    _render(found, folder)
    return 0 if found["conformant"] else 1


def _in_order(items: Sequence[Item], kept: Sequence[Any]) -> list[Outcome]:
    by_item = {tuple(item): (verdict, error) for item, verdict, error in kept}
    return [Outcome(entry, *by_item[tuple(entry)]) for entry in items]


def _render(found: dict[str, Any], folder: Path) -> None:
    """Write the other forms of the report, as far as their requirements are installed."""
    try:
        from tensorplug_conformance.reporting.rendering import render
        from tensorplug_conformance.reporting.reproduction import write_scripts
    except ImportError as error:
        print(f"the report is JSON only: {error}")
        return
    render(found, folder)
    write_scripts(found, folder / "repros")


if __name__ == "__main__":
    raise SystemExit(main())
