"""The self test: the suite must catch saboteurs and idle backends, and pass clean ones."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
from rich.progress import Progress
from rich.table import Table

from tensorplug.plugin import TensorplugError
from tensorplug_conformance.reporting.quoting import for_terminal
from tensorplug_conformance.selftest.bench import Finding
from tensorplug_conformance.selftest.matrix import matrix
from tensorplug_conformance.selftest.sharing import Plan, Results, run
from tensorplug_conformance.selftest.trials import Trial, try_backend, try_null, try_saboteur
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

__all__ = ["Finding", "Plan", "Trial", "selftest", "try_backend", "try_null", "try_saboteur"]


def selftest(console: Console, plan: Plan | None = None, jobs: int | None = None) -> int:
    """Carry out ``plan`` on its clean backend; print the matrix; return 0 if nothing escaped.

    ``jobs``: how many processes share the work; by default, one per core.
    """
    chosen = plan or Plan()
    unfit = _unfit(chosen.backend)
    if unfit:
        console.print(f"[red]{for_terminal(unfit)}[/]", soft_wrap=True)
        return 2
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("self test", total=None)
        results = run(
            chosen,
            jobs or os.cpu_count() or 1,
            started=lambda total: progress.update(task, total=total),
            heard=lambda: progress.advance(task),
        )
    if not results.trials and not results.findings:
        console.print(f"[red]no kind of saboteur is called[/] {for_terminal(chosen.kinds)}")
        return 2
    return _show(results, console)


def _unfit(backend: str) -> str:
    """Return why a backend cannot be the clean reference; empty if it can."""
    try:
        session = Session(engine_factory(None), backend)
    except TensorplugError as error:
        return f"the clean reference {backend!r} does not open: {error}"
    # Some saboteurs write into buffers, or read strides.
    buffer = session.device.backend.from_host(np.zeros(1, np.float32))
    session.close()
    if not isinstance(buffer, np.ndarray):
        return f"the clean reference must have NumPy arrays as buffers: {backend} has others"
    return ""


def _show(results: Results, console: Console) -> int:
    console.print(_outcomes(results.trials))
    for table in matrix(results.findings, console.width):
        console.print(table)
    wrong = sum(not trial.right for trial in results.trials)
    for finding in results.findings:
        if finding.outcome == "escaped":
            name = f"{finding.saboteur.name} {finding.saboteur.dtype}"
            what = for_terminal(f"{name}: {finding.evidence}")
            console.print(f"[bold red]ESCAPED[/] {what}")
            wrong += 1
    caught = sum(finding.outcome == "caught" for finding in results.findings)
    if wrong:
        console.print(f"[bold red]{wrong} came out wrong[/], {caught} saboteurs caught")
        return 1
    summary = f"{caught} saboteurs caught, {len(results.trials)} trials of backends"
    console.print(f"[bold green]all right[/]: {summary}")
    return 0


def _outcomes(trials: Sequence[Trial]) -> Table:
    table = Table("tried", "outcome", "what gave it away")
    for trial in trials:
        mark = "[green]right[/]" if trial.right else "[bold red]ESCAPED[/]"
        table.add_row(for_terminal(trial.name), mark, for_terminal(trial.evidence[:110]))
    return table
