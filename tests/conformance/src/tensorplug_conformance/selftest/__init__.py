"""The suite's own test: backends that do nothing and saboteurs must be caught, clean ones pass."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from tensorplug.errors import TensorplugError
from tensorplug_conformance.certify import certify
from tensorplug_conformance.checks import NotMeasuredError, Target, checks
from tensorplug_conformance.denominator import Row, entries, rows
from tensorplug_conformance.kernels import run_row
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.selftest.backends import (
    WRONG_BACKENDS,
    WrongBackend,
    engine_with,
)
from tensorplug_conformance.selftest.null import NULL
from tensorplug_conformance.selftest.sabotage import Saboteur, install
from tensorplug_conformance.selftest.saboteurs import saboteurs
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.verdicts import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from tensorplug_conformance.tables import CaseEntry

__all__ = ["Trial", "selftest", "try_backend", "try_null", "try_saboteur"]

_NULL_LEVEL = 2


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried: whether it came out as it must, and what gave it away."""

    name: str
    right: bool
    evidence: str


def selftest(console: Console, backend: str = "cpu", *, kinds: str = "*") -> int:
    """Try everything on the clean ``backend``; print the matrix; 0 if nothing escaped."""
    try:
        Session(engine_factory(None), backend).close()
    except TensorplugError as error:
        console.print(
            f"[red]the clean reference {escape(backend)!r} does not open[/]: {escape(str(error))}"
        )
        return 2
    if not _has_arrays(backend):
        console.print(f"[red]the clean reference must have NumPy arrays as buffers[/]: {backend}")
        return 2
    chosen = [each for each in saboteurs() if fnmatch.fnmatchcase(each.kind, kinds)]
    known = entries()
    trials = [try_null(name) for name in ("zeros", "nothing")] if kinds == "*" else []
    trials += _clean(backend, known, chosen, console)
    if kinds == "*":
        trials += [try_backend(backend, each) for each in WRONG_BACKENDS]
    for saboteur in track(
        chosen, "saboteurs", console=console, disable=not console.is_terminal, transient=True
    ):
        trials.append(try_saboteur(backend, known[saboteur.kernel], saboteur))
    console.print(_matrix(trials))
    escaped = [each.name for each in trials if not each.right]
    if escaped:
        console.print(
            f"[bold red]{len(escaped)} of {len(trials)} came out wrong[/]: {', '.join(escaped)}"
        )
        return 1
    console.print(f"[bold green]all {len(trials)} came out right[/]")
    return 0


def _has_arrays(backend: str) -> bool:
    """Return whether buffers are arrays: some saboteurs write into them, or look at strides."""
    session = Session(engine_factory(None), backend)
    found = isinstance(session.device.backend.from_host(np.zeros(1, np.float32)), np.ndarray)
    session.close()
    return found


def try_null(function: str) -> Trial:
    """Run the null backend whose kernels give ``zeros`` or ``nothing``; no primitive may pass."""
    target = Target(NULL, f"tensorplug_conformance.selftest.null:{function}")
    report = certify(target, _NULL_LEVEL)
    passed = {row["kernel"] for row in report["rows"] if row["status"].startswith("pass")}
    right = report["conformant"] is False and not passed
    reasons = report["blocked_by"] + [f"passed: {', '.join(sorted(passed))}"] * bool(passed)
    return Trial(f"null backend: {function}", right, "; ".join(reasons))


def try_backend(backend: str, wrong: WrongBackend) -> Trial:
    """Run the check that must find a wrong backend out."""
    (check,) = (each for each in checks(wrong.level) if each.id == wrong.check)
    session = Session(lambda: engine_with(wrong), backend)
    name = f"backend that {wrong.name}"
    try:
        check.run(Target(backend), lambda: session)
    except NotMeasuredError as reason:
        return Trial(name, False, f"not measured: {reason}")
    except Exception as error:  # noqa: BLE001  # as in a worker: whatever it is, it is a verdict
        return Trial(name, True, f"{check.id}: {error}".splitlines()[0])
    return Trial(name, False, f"check {check.id!r} passed")


def _clean(
    backend: str, known: Mapping[str, CaseEntry], chosen: Sequence[Saboteur], console: Console
) -> list[Trial]:
    """Run the very rows in which saboteurs are tried on the clean reference."""
    found = []
    session = Session(engine_factory(None), backend)
    tried = sorted({(each.kernel, each.dtype) for each in chosen})
    for kernel, dtype in track(
        tried, "clean", console=console, disable=not console.is_terminal, transient=True
    ):
        verdict = run_row(session, known[kernel], Row(kernel, dtype, "native"), 0)
        if verdict.status != "pass native":
            first = verdict.failures[0] if verdict.failures else None
            why = f"{first.case}: {first.message}" if first else verdict.reason
            found.append(Trial(f"clean {kernel} {dtype}", False, f"{verdict.status}: {why}"))
    session.close()
    return found or [Trial(f"clean {backend}: {len(tried)} rows", True, "all pass")]


def try_saboteur(backend: str, entry: CaseEntry, saboteur: Saboteur) -> Trial:
    """Run the rows of the sabotaged kernel on an engine of its own; one of them must fail."""
    session = Session(engine_factory(None), backend)
    install(session, saboteur)
    row = Row(saboteur.kernel, saboteur.dtype, "native")
    known = {entry.spec.name: entry}
    level = 2 if saboteur.kernel in PRIMITIVES else 3
    assert row in rows(level, known)  # what is tried is part of the suite
    verdict = run_row(session, entry, row, 0)
    session.close()
    caught = verdict.status in BLOCKING
    evidence = verdict.failures[0] if verdict.failures else None
    told = f"{evidence.case}: {evidence.message}" if evidence else verdict.status
    name = f"{saboteur.name} {saboteur.dtype}"
    return Trial(name, caught, told.splitlines()[0])


def _matrix(trials: Sequence[Trial]) -> Table:
    table = Table("tried", "outcome", "what gave it away")
    for each in trials:
        mark = "[green]right[/]" if each.right else "[bold red]ESCAPED[/]"
        table.add_row(escape(each.name), mark, escape(each.evidence[:110]))
    return table
