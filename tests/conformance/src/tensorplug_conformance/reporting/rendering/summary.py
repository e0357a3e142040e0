"""A summary in Markdown, for release notes and pull requests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.reporting.quoting import for_markdown
from tensorplug_conformance.reporting.rendering.badge import standing
from tensorplug_conformance.reporting.rendering.others import COLUMNS, others
from tensorplug_conformance.reporting.report import limited, registered
from tensorplug_conformance.verdicts import BLOCKING, PASSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug_conformance.reporting.rendering.others import Others


_VERDICTS: Final = {True: "conformant", False: "not conformant", None: "not certified"}
_SHOWN: Final = 50  # rows that failed; the report has them all


def summary(report: Mapping[str, Any]) -> str:
    """Return the verdict, counts by mode and status, and what failed."""
    backend, suite, counted = report["backend"], report["suite"], report["denominator"]
    name_and_version = [backend.get(key, "?") for key in ("distribution", "version")]
    distribution, version, device = map(
        for_markdown, (*name_and_version, backend.get("device", backend.get("error", "?")))
    )
    passed = f"{report['totals']['cases_passed']} cases passed"
    versions = f"suite {suite['version']}, tolerances {suite['tolerances']}, seed {suite['seed']}"
    versions += f", {suite['examples']} random examples per row"
    certified = f"certified for {registered(report)}, {_VERDICTS[False]}"
    judged = [
        f"{name}: "
        + (
            certified
            if registered(report) and not verdict["blocked_by"]
            else _VERDICTS[verdict["conformant"]]
        )
        for name, verdict in (("strict", report), ("vendor", report["vendor"]))
    ]
    counts = f"{counted['rows']} rows, {counted['cases']} cases, {passed}"
    lines = [
        f"# Conformance of {for_markdown(backend['name'])}: {standing(report)}",
        "",
        f"- by the profiles: {', '.join(judged)}",
        f"- backend: {distribution} {version} on {device}",
        f"- {versions}, tensorplug {report['tensorplug']}",
        f"- extensions: {for_markdown(report['environment'].get('extensions') or 'none')}",
        f"- {counts}, {report['seconds']:.0f} s, {for_markdown(report['started'])}",
        f"- SHA-256 of the cases: `{counted['sha256']}`",
        *[f"- {limited(report)}"] * bool(limited(report)),
        "",
        *_counts(report),
    ]
    if report["blocked_by"]:
        lines += [
            "",
            "## In the way",
            "",
            *(f"- {for_markdown(fault)}" for fault in report["blocked_by"]),
        ]
    failed = [row for row in report["rows"] if row["status"] in (*BLOCKING, "expected fail")]
    if failed:
        lines += ["", "## Rows that fail", "", "| row | status | first case |", "|---|---|---|"]
        lines += [_line(row) for row in failed[:_SHOWN]]
        if len(failed) > _SHOWN:
            lines.append(f"| and {len(failed) - _SHOWN} more | | |")
    for one in others(report):
        lines += ["", *_others(one)]
    return "\n".join(lines) + "\n"


def _others(one: Others) -> list[str]:
    idle = f"{one.idle} of those that pass ran no kernel of the backend."
    lines = [
        f"## {for_markdown(one.about['title'])}",
        "",
        f"{for_markdown(one.about['about'])} {idle} ({one.versions}; no condition.)",
        "",
        f"| group | {' | '.join(COLUMNS)} |",
        "|---" + "|---:" * len(COLUMNS) + "|",
    ]
    for group, counts in one.groups:
        numbers = " | ".join(str(count or "") for count in counts)
        lines.append(f"| {for_markdown(group)} | {numbers} |")
    if one.failures:
        lines += ["", "| test that fails | why |", "|---|---|"]
        for test in one.failures[:_SHOWN]:
            lines.append(f"| {for_markdown(test['test'])} | {for_markdown(test['why'])} |")
        if len(one.failures) > _SHOWN:
            lines.append(f"| and {len(one.failures) - _SHOWN} more | |")
    return lines


def _counts(report: Mapping[str, Any]) -> list[str]:
    counted: dict[str, Counter[str]] = {}
    for row in report["rows"]:
        status = "pass" if row["status"] in PASSED else row["status"]
        counted.setdefault(row["mode"], Counter())[status] += 1
    columns = ["pass", *BLOCKING, "expected fail", "unsupported dtype", "not claimed"]
    lines = [f"| rows | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for mode, line in counted.items():
        lines.append(f"| {mode} | {' | '.join(str(line[column] or '') for column in columns)} |")
    return lines


def _line(row: Mapping[str, Any]) -> str:
    first = row["failures"][0] if row["failures"] else None
    text = f"{first['case']}: {first['message']}" if first else row["reason"]
    what = for_markdown(f"{row['kernel']} {row['dtype']} {row['mode']}")
    return f"| {what} | {row['status']} | {for_markdown(text)} |"
