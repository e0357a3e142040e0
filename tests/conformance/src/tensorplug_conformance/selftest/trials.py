"""Trials of the self test, and whether they came out right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorplug_conformance.checks import NotMeasuredError, Target, checks
from tensorplug_conformance.denominator import Row, cases_of, entries, rows
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.selftest import null
from tensorplug_conformance.selftest.backends import WrongBackend, engine_with
from tensorplug_conformance.selftest.bench import Bench, Finding
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.rows import planned, run_case, run_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Saboteur


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial: whether it came out right, and the evidence."""

    name: str
    right: bool
    evidence: str


def try_null(function: str) -> Trial:
    """Run the null backend whose kernels give ``zeros`` or ``nothing``; no primitive may pass.

    One dtype of each will do, and the first case that fails.
    """
    known = entries()
    session = Session(getattr(null, function), null.NULL)
    passed = []
    for name in sorted(PRIMITIVES):
        row = Row(name, known[name].leading.name, "native")
        cases = planned(known[name], row, cases_of(known[name], row, 0)).cases
        if not any(run_case(session, known[name], row, case) for case in cases):
            passed.append(name)
    session.close()
    said = f"{len(PRIMITIVES) - len(passed)} of {len(PRIMITIVES)} primitives fail"
    evidence = f"passed: {', '.join(passed)}" if passed else said
    return Trial(f"null backend: {function}", not passed, evidence)


def try_backend(backend: str, wrong: WrongBackend) -> Trial:
    """Run the check that must catch a wrong backend."""
    (check,) = (check for check in checks(wrong.level) if check.id == wrong.check)
    session = Session(lambda: engine_with(wrong), backend)
    name = f"backend that {wrong.name}"
    try:
        check.run(Target(backend), lambda: session)
    except NotMeasuredError as reason:
        return Trial(name, False, f"not measured: {reason}")
    except Exception as error:  # noqa: BLE001  # as in a worker: whatever it is, it is a verdict
        return Trial(name, True, f"{check.id}: {error}".splitlines()[0])
    return Trial(name, False, f"check {check.id!r} passed")


def try_clean(
    backend: str, known: Mapping[str, CaseEntry], tried: Iterable[Row], seed: int = 0
) -> list[Trial]:
    """Run rows on the clean reference; return those that do not pass."""
    items = []
    session = Session(engine_factory(None), backend)
    for row in tried:
        verdict = run_row(session, known[row.kernel], row, seed)
        if not verdict.status.startswith("pass"):
            first = verdict.failures[0] if verdict.failures else None
            why = f"{first.case}: {first.message}" if first else verdict.reason
            name = f"clean {row.kernel} {row.dtype} {row.mode}"
            items.append(Trial(name, False, f"{verdict.status}: {why}"))
    session.close()
    return items


def try_saboteur(backend: str, entry: CaseEntry, saboteur: Saboteur) -> Finding:
    """Try one saboteur on an engine of its own."""
    known = {entry.spec.name: entry}
    row = Row(saboteur.kernel, saboteur.dtype, saboteur.mode)
    primitive = saboteur.kernel in PRIMITIVES and saboteur.mode == "native"
    assert row in rows(2 if primitive else 3, known)  # the tested code is part of the suite
    session = Session(engine_factory(None), backend)
    try:
        return Bench(session, known).try_one(saboteur)
    finally:
        session.close()
