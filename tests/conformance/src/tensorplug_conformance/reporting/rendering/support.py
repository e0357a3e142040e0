"""The support matrix: one page on what the reports of several backends prove for each kernel.

A folder of badges comes with it: each as an image, and as data for services that draw badges
themselves (the endpoint schema of shields.io).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.reporting.quoting import for_markdown
from tensorplug_conformance.reporting.rendering.badge import badge, colour, standing
from tensorplug_conformance.reporting.rendering.sections import PLACE, kept
from tensorplug_conformance.reporting.report import registered
from tensorplug_conformance.verdicts import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    Report = Mapping[str, Any]


PAGE: Final = "support.md"
BADGES: Final = "badges"
_BAR: Final = re.compile(r"(?<!\\)\|")  # one that would end a cell
_HEAD: Final = """\
# Which backend does what

Written by `make support` from the reports of [the conformance suite](conformance.md); every line
was measured, none is written by hand. A cell says in how many dtypes the backend passes.

- **native**: by a kernel of its own
- **widened**: a primitive by its kernel in a wider dtype, rounded once
- **decomposed**: made of its primitives, by the core
- **failed**: wrong in some case, in the dtypes that are named
- **unsupported**: the backend declares none of the kernel's dtypes
- **·**: the report does not try it (level 2: the primitives, natively; partial: the kernels that
  the backend registers)
- **∂**: gradients pass in every dtype in which they are tried
"""


def write_support(reports: Sequence[Report], folder: Path) -> list[Path]:
    """Write the page and the badges into ``folder``; return the paths.

    Sections that others have put into the page are kept.
    """
    badges = folder / BADGES
    badges.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    before = page.read_text("utf-8") if page.exists() else ""
    forms = {page: support(reports, kept(before))}
    for report in reports:
        name = report["backend"]["name"]
        forms[badges / f"{name}.svg"] = badge(report)
        forms[badges / f"{name}.json"] = _endpoint(report)
    for path, text in forms.items():
        path.write_text(text, "utf-8")
    return list(forms)


def _endpoint(report: Report) -> str:
    shown = {
        "schemaVersion": 1,
        "label": "tensorplug conformance",
        "message": standing(report),
        "color": colour(report).removeprefix("#"),
    }
    return json.dumps(shown, indent=1) + "\n"


def support(reports: Sequence[Report], sections: str = "") -> str:
    """Return the page in Markdown: a line for each backend, ``sections``, a matrix of kernels."""
    ordered = sorted(reports, key=lambda report: str(report["backend"]["name"]))
    names = [report["backend"]["name"] for report in ordered]
    lines = [_HEAD, *_backends(ordered), "", sections + PLACE]
    lines += table(["kernel", *names], _matrix(ordered))
    return "\n".join(lines) + "\n"


def _backends(reports: Iterable[Report]) -> list[str]:
    lines = []
    for report in reports:
        backend, suite = report["backend"], report["suite"]
        source = f"{backend.get('distribution', '?')} {backend.get('version', '?')}"
        counts = Counter(_state(rows) for rows in _by_kernel(report).values())
        lines.append(
            [
                f"![{backend['name']}: {standing(report)}]({BADGES}/{backend['name']}.svg)",
                for_markdown(f"{backend['name']}, {source}"),
                for_markdown(backend.get("device", "?")),
                "partial" if registered(report) else str(report["level"]),
                *(str(counts[state]) for state in ("native", "decomposed", "failed")),
                str(report["totals"]["cases_passed"]),
                f"{suite['version']}, tolerances {suite['tolerances']}",
                for_markdown(report["started"][:10]),
            ]
        )
    head = ["", "backend", "device", "level", "native", "decomposed", "failed", "cases passed"]
    return table([*head, "suite", "date"], lines)


def _matrix(reports: Sequence[Report]) -> list[list[str]]:
    items = [_by_kernel(report) for report in reports]
    kernels = sorted({name for cells in items for name in cells}, key=str.lower)
    return [[f"`{name}`", *(_cell(cells.get(name, [])) for cells in items)] for name in kernels]


def _by_kernel(report: Report) -> dict[str, list[Mapping[str, Any]]]:
    by_kernel: dict[str, list[Mapping[str, Any]]] = {}
    for row in report["rows"]:
        by_kernel.setdefault(row["kernel"], []).append(row)
    return by_kernel


def _passed(rows: Iterable[Mapping[str, Any]], how: str) -> set[str]:
    return {row["dtype"] for row in rows if row["status"] == f"pass {how}"}


def _failed(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    against = (*BLOCKING, "expected fail")
    return sorted({row["dtype"] for row in rows if row["status"] in against})


def _state(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of a kernel that count: a failure, else the best pass."""
    if _failed(rows):
        return "failed"
    for how in ("native", "widened", "decomposed"):
        if _passed(rows, how):
            return how
    return "unsupported"


def _cell(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return in how many dtypes a kernel passes, and how."""
    if not [row for row in rows if row["mode"] != "gradient"]:
        return "·"
    failed = _failed(rows)
    if failed:
        return f"**failed**: {', '.join(failed)}"
    parts = {how: _passed(rows, how) for how in ("native", "widened", "decomposed")}
    parts["decomposed"] -= parts["native"]
    text = ", ".join(f"{how} {len(dtypes)}" for how, dtypes in parts.items() if dtypes)
    if text:
        return f"{text}{' ∂' if _passed(rows, 'gradient') else ''}"
    return "·" if any(row["status"] == "not claimed" for row in rows) else "unsupported"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown, of cells in Markdown."""
    body = (" | ".join(_BAR.sub(r"\|", cell) for cell in line) for line in lines)
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {line} |" for line in body)]
