"""A whole run: the levels in order, each supervised, and the report of it all."""

from __future__ import annotations

import difflib
import re
import time
from dataclasses import asdict, astuple, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance import SUITE_VERSION, evidence
from tensorplug_conformance.checks import checks
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import bounds
from tensorplug_conformance.denominator import LEVELS, Selection, entries, fingerprint, rows
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.reporting import report
from tensorplug_conformance.running.supervisor import Limits, supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks import Target
    from tensorplug_conformance.comparing.vendor import Profile
    from tensorplug_conformance.denominator import Row
    from tensorplug_conformance.reporting.expectations import Expectation
    from tensorplug_conformance.running.journal import Journal
    from tensorplug_conformance.verdicts import Item, Outcome


_ALIKE: Final = 12  # names that are told
_TOGETHER: Final = 2  # from this level on, items wait in one queue
_MEASURES: Final = 1  # the level that measures the device: other processes would change that


class EmptySelectionError(Exception):
    """The selection leaves nothing to run."""


def items_of(
    level: int, known: Mapping[str, CaseEntry], selection: Selection, examples: int = 0
) -> tuple[list[Item], list[Row]]:
    """Return the items of ``level`` itself, and those of them that are rows.

    ``examples``: random ones for every row that runs a kernel.
    """
    items: list[Item] = [
        ("check", check.level, check.id)
        for check in checks(level)
        if selection.takes_check(check.id)
    ]
    chosen = [row for row in rows(level, known) if selection.takes(row)]
    for row in chosen:
        more = (examples,) if examples and row.mode != "gradient" else ()
        items.append(("row", *astuple(row), *more))
    return items, chosen


def certify(
    target: Target,
    level: int,
    *,
    seed: int = 0,
    examples: int = 0,
    selection: Selection | None = None,
    limits: Limits | None = None,
    expectations: Iterable[Expectation] = (),
    collections: Sequence[str] = (),
    jobs: int = 1,
    profile: Profile = "strict",
    journal: Journal | None = None,
    opened: Mapping[str, Any] | None = None,
    started: Callable[[Sequence[Item]], None] = lambda _items: None,
    heard: Callable[[Outcome], None] = lambda _outcome: None,
) -> dict[str, Any]:
    """Run levels 0 to ``level`` on ``target``; return the report.

    KeyboardInterrupt ends the run, and the report has what there is by then.

    ``examples``: how many random ones are tried beside the cases, for each row that runs a kernel.
    ``jobs``: how many processes share the items of a level, but for level 1, where the device is
    measured. The report does not depend on it. ``profile``: the verdict that decides the exit
    code; the report has both. ``collections``: names of installed collections of tests
    (``evidence``), which run last. ``journal``: takes all outcomes down, and has those of before;
    ``opened``: what the backend has said of itself, which must not change in between. ``started``
    is told the items of all levels that remain, before the first is run, ``heard`` each outcome.

    Raises:
        EmptySelectionError: nothing is left to run.
        EvidenceError: a collection is not installed, or is none.
        ResumeError: the journal is of another run.

    """
    others = [item for name in collections for item in evidence.items_of(name)]
    described = [evidence.described(name) for name in collections]
    began, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    chosen = selection or Selection()
    known = entries(extension_tables())
    parts = [items_of(index, known, chosen, examples) for index in range(level + 1)]
    listed = [row for _, some in parts for row in some]
    _check_selection(chosen, level, known)
    series = {
        ("check", check.level, check.id): check.series
        for index in range(level + 1)
        for check in checks(index)
        if check.series
    }
    kept = journal.outcomes if journal else {}
    levels = [items for items, _ in parts]
    queues = [
        *levels[:_TOGETHER],
        [*chain.from_iterable(levels[_TOGETHER:]), *others],
    ]
    items_left = [[item for item in items if item not in kept] for items in queues]
    started([item for items in items_left for item in items])
    cases, digest = fingerprint(listed, known, seed, jobs)
    backend: dict[str, Any] = {"name": target.backend}
    if journal:
        header = {
            "suite": [SUITE_VERSION, tolerances().version, bounds().version],
            "seed": seed,
            "examples": examples,
            "level": level,
            "selection": asdict(chosen),
            "evidence": {one["name"]: one["versions"] for one in described},
            "item limit": (limits or Limits()).item,
            "cases": [cases, digest],
            "backend": {key: value for key, value in (opened or {}).items() if key != "kernels"},
            "name": target.backend,
            "environment": report.environment(),
            "draw": target.draw,
            "started": began,
        }
        journal.begin(header)
        assert journal.header is not None  # it has begun
        target = replace(target, draw=journal.header["draw"])
        began = journal.header["started"]
        backend.update(journal.introduced)
    outcomes = dict(kept)

    def noted(outcome: Outcome) -> None:
        outcomes[outcome.item] = outcome
        if journal:
            journal.add(outcome)
        heard(outcome)

    def introduced(said: dict[str, Any]) -> None:
        backend.update(said)
        if journal:
            journal.introduce(said)

    last = max((number for number, items in enumerate(items_left) if items), default=0)
    interrupted = False
    try:
        for number, items in enumerate(items_left):
            supervise(
                target,
                items,
                seed,
                limits or Limits(),
                noted,
                introduced=introduced if number == last else None,
                series=series,
                jobs=1 if number == _MEASURES <= level else jobs,
            )
    except KeyboardInterrupt:
        interrupted = True
        backend = {"name": target.backend, **(opened or {}), **backend}
    asked = list(chain.from_iterable(queues))
    return report.assemble(
        suite=SUITE_VERSION,
        backend=backend,
        level=level,
        seed=seed,
        examples=examples,
        draw=target.draw,
        selection=chosen,
        denominator={
            "rows": len(listed),
            "cases": cases,
            "sha256": digest,
            "kernels": sorted(known),
        },
        outcomes=[outcomes[item] for item in asked if item in outcomes],
        missing=[item for item in asked if item not in outcomes] if interrupted else [],
        seconds=time.monotonic() - clock + (journal.seconds if journal else 0.0),
        started=began,
        expectations=expectations,
        profile=profile,
        collections=described,
    )


def _check_selection(chosen: Selection, level: int, known: Mapping[str, CaseEntry]) -> None:
    """Refuse a selection with a part that has no row up to ``level``.

    Raises:
        EmptySelectionError: names that part, and the level that has rows of it, if one has.

    """
    for glob in chosen.checks:
        part = Selection(checks=(glob,))
        items = [
            number for number in LEVELS for check in checks(number) if part.takes_check(check.id)
        ]
        if not items:
            names = [check.id for number in LEVELS for check in checks(number)]
            stem = re.split(r"[^\w ]", glob)[0].strip()
            alike = [name for name in names if stem and name.startswith(stem)]
            alike = alike or difflib.get_close_matches(glob, names)
            near = f"; similar are {', '.join(map(repr, alike[:_ALIKE]))}" if alike else ""
            raise EmptySelectionError(f"no check is called {glob!r}{near}")
        if items[0] > level:
            raise EmptySelectionError(
                f"level {level} has no check {glob!r}; level {items[0]} has: --level {items[0]}"
            )
    if not chosen.of_rows:
        return
    by_level = {level: rows(level, known) for level in LEVELS}
    for glob in chosen.kernels or ("*",):
        part = replace(chosen, kernels=(glob,), checks=())
        items = [level for level in LEVELS if any(map(part.takes, by_level[level]))]
        if not items:
            raise EmptySelectionError(
                f"no kernel of the catalogue is called {glob!r} in these dtypes and modes"
            )
        if items[0] > level:
            raise EmptySelectionError(
                f"level {level} has no rows of {glob!r}; level {items[0]} has: --level {items[0]}"
            )
