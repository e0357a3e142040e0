"""A whole run: the levels in order, each supervised, and the report of it all."""

from __future__ import annotations

import time
from dataclasses import astuple, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance import SUITE_VERSION, report
from tensorplug_conformance.checks import checks
from tensorplug_conformance.denominator import LEVELS, Selection, entries, fingerprint, rows
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.supervisor import Limits, supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks import Target
    from tensorplug_conformance.denominator import Row
    from tensorplug_conformance.expectations import Expectation
    from tensorplug_conformance.supervisor import Item, Outcome
    from tensorplug_conformance.vendor import Profile

__all__ = ["EmptySelectionError", "certify", "items_of"]

_MEASURES: Final = (1, 4)  # other processes on the device change what these measure


class EmptySelectionError(Exception):
    """The selection leaves nothing to run."""


def items_of(
    level: int, known: Mapping[str, CaseEntry], selection: Selection, examples: int = 0
) -> tuple[list[Item], list[Row]]:
    """Return the items of ``level`` itself, and those of them that are rows.

    A selection of kernels or dtypes leaves the checks out. ``examples``: random ones for every
    row that runs a kernel.
    """
    found: list[Item] = []
    if not selection.partial:
        found.extend(("check", check.level, check.id) for check in checks(level))
    chosen = [row for row in rows(level, known) if selection.takes(row)]
    for row in chosen:
        more = (examples,) if examples and row.mode != "gradient" else ()
        found.append(("row", *astuple(row), *more))
    return found, chosen


def certify(
    target: Target,
    level: int,
    *,
    seed: int = 0,
    examples: int = 0,
    selection: Selection | None = None,
    limits: Limits | None = None,
    expectations: Iterable[Expectation] = (),
    jobs: int = 1,
    profile: Profile = "strict",
    started: Callable[[Sequence[Item]], None] = lambda _items: None,
    heard: Callable[[Outcome], None] = lambda _outcome: None,
) -> dict[str, Any]:
    """Run levels 0 to ``level`` on ``target``; return the report.

    ``examples``: how many random ones are tried beside the cases, for each row that runs a kernel.
    ``jobs``: how many processes share the items of a level, but for levels 1 and 4, where memory
    and threads are measured. The report does not depend on it. ``profile``: the verdict that
    decides the exit code; the report has both. ``started`` is told the items of
    all levels, before the first is run, ``heard`` each outcome.
    """
    began, clock = datetime.now(UTC), time.monotonic()
    chosen = selection or Selection()
    known = entries(extension_tables())
    parts = [items_of(index, known, chosen, examples) for index in range(level + 1)]
    listed = [row for _, some in parts for row in some]
    _check_selection(chosen, level, known)
    started([item for items, _ in parts for item in items])
    cases, digest = fingerprint(listed, known, seed)  # of all levels: many seconds
    backend: dict[str, Any] = {"name": target.backend}
    outcomes: list[Outcome] = []
    last = max((number for number, (items, _) in enumerate(parts) if items), default=level)
    for number, (items, _) in enumerate(parts):
        outcomes += supervise(
            target,
            items,
            seed,
            limits or Limits(),
            heard,
            introduced=backend.update if number == last else None,
            jobs=1 if number in _MEASURES else jobs,
        )
    return report.assemble(
        suite=SUITE_VERSION,
        backend=backend,
        level=level,
        seed=seed,
        examples=examples,
        selection=chosen,
        denominator={
            "rows": len(listed),
            "cases": cases,
            "sha256": digest,
            "kernels": sorted(known),
        },
        outcomes=outcomes,
        seconds=time.monotonic() - clock,
        started=began.isoformat(timespec="seconds"),
        expectations=expectations,
        profile=profile,
    )


def _check_selection(chosen: Selection, level: int, known: Mapping[str, CaseEntry]) -> None:
    """Refuse a selection with a part that has no row up to ``level``.

    Raises:
        EmptySelectionError: names that part, and the level that has rows of it, if one has.

    """
    if not chosen.partial:
        return
    by_level = {level: rows(level, known) for level in LEVELS}
    for glob in chosen.kernels or ("*",):
        part = replace(chosen, kernels=(glob,))
        found = [level for level in LEVELS if any(map(part.takes, by_level[level]))]
        if not found:
            raise EmptySelectionError(
                f"no kernel of the catalogue is called {glob!r} in these dtypes and modes"
            )
        if found[0] > level:
            raise EmptySelectionError(
                f"level {level} has no rows of {glob!r}; level {found[0]} has: --level {found[0]}"
            )
