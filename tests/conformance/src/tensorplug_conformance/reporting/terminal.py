"""The report on a terminal: what passed and what failed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tensorplug_conformance.reporting.quoting import for_terminal
from tensorplug_conformance.reporting.rendering.others import COLUMNS, others
from tensorplug_conformance.reporting.report import limited, registered, verdict
from tensorplug_conformance.verdicts import BLOCKING, PASSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from tensorplug_conformance.reporting.differences import Differences
    from tensorplug_conformance.reporting.rendering.others import Others


_SHOWN = 20  # failures shown; the report has them all


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print a report."""
    backend = report["backend"]
    distribution, version = backend.get("distribution", "?"), backend.get("version", "?")
    device = backend.get("device", backend.get("error", "?"))
    place = for_terminal(f"({distribution} {version}) on {device}")
    console.print(f"[bold]{for_terminal(backend['name'])}[/] {place}")
    suite = report["suite"]
    counted = report["denominator"]
    scope = "the kernels it registers" if registered(report) else f"level {report['level']}"
    console.print(
        f"suite {suite['version']}, tolerances {suite['tolerances']}, {scope}, "
        f"seed {suite['seed']}, {suite['examples']} examples per row: {counted['rows']} rows, "
        f"{counted['cases']} cases, "
        f"{report['totals']['cases_passed']} cases passed in {report['seconds']:.0f} s",
        soft_wrap=True,
    )
    if limited(report):
        console.print(limited(report), highlight=False, soft_wrap=True)
    if report["checks"]:
        _show_checks(report, console)
    if report["rows"]:
        console.print(_matrix(report))
        _show_failures(report, console)
    for one in others(report):
        _show_others(one, console)
    if report["partial"] and not report["checks"]:
        note = "the checks of levels 0, 1 and 4 were left out; --checks 'GLOBS' runs them"
        console.print(note, highlight=False, soft_wrap=True)
    console.print(_verdict(report), soft_wrap=True)


def _show_checks(report: Mapping[str, Any], console: Console) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in report["totals"]["checks"].items())
    console.print(f"checks: {counts}")
    for check in report["checks"]:
        if check["status"] == "fail":
            console.print(
                f"  [red]fail[/] {for_terminal(check['check'])}: {for_terminal(check['message'])}",
                soft_wrap=True,
            )


def _show_others(one: Others, console: Console) -> None:
    about = f"{one.about['title']} ({one.versions}), no condition of a certificate"
    console.print(for_terminal(about), highlight=False, soft_wrap=True)
    table = Table("tests", *COLUMNS[1:], title=None)
    for group, counts in one.groups:
        table.add_row(for_terminal(group), *(str(count or "") for count in counts[1:]))
    console.print(table)
    if one.idle:
        console.print(
            f"{one.idle} of those that pass ran no kernel of the backend", highlight=False
        )
    for test in one.failures[:_SHOWN]:
        line = f"[red]fail[/] {for_terminal(test['test'])}: {for_terminal(test['why'])}"
        console.print(line, highlight=False, soft_wrap=True)
    if len(one.failures) > _SHOWN:
        console.print(f"... and {len(one.failures) - _SHOWN} more tests, in the report")


def _matrix(report: Mapping[str, Any]) -> Table:
    """Return a table: for each mode, how many rows have which status, by what decides."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in report["rows"]:
        status = "pass" if _status(report, row) in PASSED else _status(report, row)
        counts[row["mode"]][status] += 1
    columns = ["pass", *BLOCKING, "expected fail", "unsupported dtype", "not claimed"]
    columns = [column for column in columns if any(line.get(column) for line in counts.values())]
    table = Table("rows", *columns, title=None)
    for mode, line in counts.items():
        table.add_row(mode, *(str(line.get(status, 0) or "") for status in columns))
    return table


def _status(report: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the status of a row under the profile that decides."""
    status: str = row["status" if report["profile"] == "strict" else "vendor"]
    return status


def _show_failures(report: Mapping[str, Any], console: Console) -> None:
    strict = report["profile"] == "strict"
    failed = [row for row in report["rows"] if _status(report, row) in BLOCKING]
    for row in failed[:_SHOWN]:
        where = f"{row['kernel']} {row['dtype']} {row['mode']}"
        deciding = [one for one in row["failures"] if strict or not one["tolerated"]]
        first = deciding[0] if deciding else None
        text = f"{first['case']}: {first['message']}" if first else row["reason"]
        line = f"[red]{_status(report, row)}[/] {where}, {for_terminal(text)}"
        console.print(line, highlight=False, soft_wrap=True)
    if len(failed) > _SHOWN:
        console.print(f"... and {len(failed) - _SHOWN} more rows, in the report")


def _verdict(report: Mapping[str, Any]) -> str:
    """Return both verdicts: strictly, and within a vendor's bounds where they differ."""
    level, vendor = report["level"], report["vendor"]
    reasons = for_terminal("; ".join(report["blocked_by"]))
    if report["interrupted"]:
        return f"[bold yellow]interrupted, certifies nothing[/]: {reasons}"
    certified = registered(report)
    if certified and not vendor["blocked_by"]:
        bounds = f" within a vendor's bounds, not strictly: {reasons}" if reasons else ", strictly"
        return f"[bold green]partial[/]: certified for {certified}{bounds}; not conformant"
    if certified:
        return f"[bold red]partial, not certified[/]: {reasons}"
    if report["conformant"] is None:
        more = for_terminal("; ".join(vendor["blocked_by"])) or "nothing failed"
        also = f" (within a vendor's bounds: {more})" if reasons and more != reasons else ""
        return f"[yellow]a partial run certifies nothing[/]: {reasons or 'nothing failed'}{also}"
    if report["conformant"]:
        return f"[bold green]conformant at level {level}[/], strictly"
    if vendor["conformant"]:
        return (
            f"[bold green]conformant at level {level} within a vendor's bounds[/], "
            f"[bold red]not strictly[/]: {reasons}"
        )
    more = for_terminal("; ".join(vendor["blocked_by"]))
    also = "" if more == reasons else f" (within a vendor's bounds: {more})"
    return f"[bold red]not conformant at level {level}[/]: {reasons}{also}"


def as_expected(report: Mapping[str, Any]) -> bool:
    """Return whether expected failures alone prevent conformance by the profile that decides.

    In a partial run they may be all there is, and then nothing passed.
    """
    return all(
        fault.endswith("rows: expected fail") or (report["partial"] and fault == "nothing passed")
        for fault in verdict(report, report["profile"])["blocked_by"]
    )


def show_differences(difference: Differences, console: Console) -> None:
    """Print what changed between two reports."""
    for note in difference.notes:
        console.print(f"[yellow]{for_terminal(note)}[/]", highlight=False)
    for title, style, changes in (
        ("worse", "red", difference.worse),
        ("better", "green", difference.better),
        ("other", "yellow", difference.other),
    ):
        for key, before, after in changes:
            what = " ".join(key)
            console.print(f"[{style}]{title}[/] {what}: {before}, now {after}", highlight=False)
    for key in difference.gone:
        console.print(f"[red]gone[/] {' '.join(key)}", highlight=False)
    if difference.new:
        console.print(f"{len(difference.new)} rows are new", highlight=False)
    for key, one, other in difference.error:
        console.print(f"[yellow]error[/] {' '.join(key)}: {one} ulp, now {other}", highlight=False)
    if not (
        difference.worse
        or difference.better
        or difference.other
        or difference.gone
        or difference.error
    ):
        console.print("no row changed", highlight=False)
