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
from tensorplug_conformance.selftest.bench import Bench, Finding
from tensorplug_conformance.selftest.generation import selected
from tensorplug_conformance.selftest.matrix import matrix
from tensorplug_conformance.selftest.null import NULL
from tensorplug_conformance.selftest.saboteurs import saboteurs
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from tensorplug_conformance.selftest.sabotage import Saboteur
    from tensorplug_conformance.tables import CaseEntry

__all__ = ["Finding", "Trial", "selftest", "try_backend", "try_null", "try_saboteur"]

_NULL_LEVEL = 2


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried: whether it came out as it must, and what gave it away."""

    name: str
    right: bool
    evidence: str


def selftest(console: Console, backend: str = "cpu", *, kinds: str = "*", thin: int = 0) -> int:
    """Try everything on the clean ``backend``; print the matrix; 0 if nothing escaped.

    Of the saboteurs that are generated, one in ``thin`` is tried: each kind in many families,
    and in each family many kinds. 1: all; 0: none, only those written by hand.
    """
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
    some = selected(thin) if thin else ()
    made = [each for each in some if fnmatch.fnmatchcase(each.kind, kinds)]
    trials = [try_null(name) for name in ("zeros", "nothing")] if kinds == "*" else []
    trials += _clean(backend, known, chosen, console)
    if kinds == "*":
        trials += [try_backend(backend, each) for each in WRONG_BACKENDS]
    findings = _tried(backend, known, [*chosen, *made], console)
    console.print(_outcomes(trials))
    console.print(matrix(findings))
    escaped = [each.name for each in trials if not each.right]
    for finding in findings:
        if finding.outcome == "escaped":
            name = f"{finding.saboteur.name} {finding.saboteur.dtype}"
            console.print(f"[bold red]ESCAPED[/] {escape(name)}: {escape(finding.evidence)}")
            escaped.append(name)
    caught = sum(each.outcome == "caught" for each in findings)
    if escaped:
        console.print(f"[bold red]{len(escaped)} came out wrong[/], {caught} saboteurs caught")
        return 1
    if not caught and not trials:
        console.print(f"[red]no kind of saboteur is called[/] {escape(kinds)}")
        return 2
    console.print(f"[bold green]all right[/]: {caught} saboteurs caught, {len(trials)} backends")
    return 0


def _tried(
    backend: str, known: Mapping[str, CaseEntry], chosen: Sequence[Saboteur], console: Console
) -> list[Finding]:
    """Try saboteurs in turn, on one session."""
    session = Session(engine_factory(None), backend)
    bench = Bench(session, known)
    # Those of one row together: its cases and what is right are kept for them alone.
    ordered = sorted(chosen, key=lambda each: (each.kernel, each.mode, each.dtype))
    found = [
        bench.try_one(each)
        for each in track(
            ordered, "saboteurs", console=console, disable=not console.is_terminal, transient=True
        )
    ]
    session.close()
    return found


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


def try_saboteur(backend: str, entry: CaseEntry, saboteur: Saboteur) -> Finding:
    """Try one saboteur on an engine of its own."""
    known = {entry.spec.name: entry}
    row = Row(saboteur.kernel, saboteur.dtype, saboteur.mode)
    primitive = saboteur.kernel in PRIMITIVES and saboteur.mode == "native"
    assert row in rows(2 if primitive else 3, known)  # what is tried is part of the suite
    session = Session(engine_factory(None), backend)
    try:
        return Bench(session, known).try_one(saboteur)
    finally:
        session.close()


def _outcomes(trials: Sequence[Trial]) -> Table:
    table = Table("tried", "outcome", "what gave it away")
    for each in trials:
        mark = "[green]right[/]" if each.right else "[bold red]ESCAPED[/]"
        table.add_row(escape(each.name), mark, escape(each.evidence[:110]))
    return table
