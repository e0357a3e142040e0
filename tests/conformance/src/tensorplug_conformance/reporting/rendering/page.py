"""One self-contained page: no server, no network, readable on a phone."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, select_autoescape

from tensorplug_conformance.cases import by_family
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.reporting.rendering.badge import badge, standing
from tensorplug_conformance.reporting.rendering.coverage import coverage
from tensorplug_conformance.reporting.rendering.others import COLUMNS, others
from tensorplug_conformance.reporting.rendering.repeating import commands, row_command
from tensorplug_conformance.reporting.rendering.speed import speed
from tensorplug_conformance.reporting.report import limited, registered
from tensorplug_conformance.reporting.reproduction import script
from tensorplug_conformance.verdicts import BLOCKING, PASSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Template


_SLOWEST: Final = 15
_MODES: Final = ("native", "decomposed", "gradient")
_WAYS: Final = {way: at for at, way in enumerate(PASSED, 1)}  # the best one first
_KINDS: Final = ("bool", "uint", "int", "bfloat", "float", "complex", "string")


def page(report: Mapping[str, Any]) -> str:
    """Return the page as HTML."""
    return _template().render(
        report=report,
        standing=standing(report),
        registered=registered(report),
        badge=badge(report),
        dtypes=_dtypes(report),
        families=_families(report),
        unsupported=sum(row["unsupported"] for row in report["rows"]),
        limited=limited(report),
        ways=_ways(report),
        coverage=coverage(report),
        speed=speed(report),
        others=others(report),
        columns=COLUMNS,
        commands=[] if report["partial"] else commands(report),
        errors=_errors(report),
        slowest=_slowest(report),
        failures=_failures(report),
    )


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True), trim_blocks=True
    )
    source = resources.files(__package__) / "page.html.jinja"
    return environment.from_string(source.read_text("utf-8"))


def _dtypes(report: Mapping[str, Any]) -> list[str]:
    """Return the dtypes of the matrix's columns, in an order that people expect."""

    def rank(name: str) -> tuple[int, int]:
        kind = next(prefix for prefix in _KINDS if name.startswith(prefix))
        digits = "".join(filter(str.isdigit, name))
        return _KINDS.index(kind), int(digits or 0)

    return sorted({row["dtype"] for row in report["rows"]}, key=rank)


def _families(report: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the lines of the matrix by family, the kernels of extensions last."""
    family = {entry.spec.name: name for name, table in by_family().items() for entry in table}
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in _kernels(report):
        name = family.get(line["name"], "extensions").replace("_", " ")
        groups.setdefault(name, []).append(line)
    return sorted(groups.items(), key=lambda pair: (pair[0] == "extensions", pair[0]))


def _ways(report: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return by how many kernels pass in which way, in the best one of each."""
    best: dict[str, int] = {}
    for row in report["rows"]:
        wrong = row["status"] in (*BLOCKING, "expected fail")
        way = 0 if wrong else _WAYS.get(row["status"], len(_WAYS) + 1)
        best[row["kernel"]] = min(best.get(row["kernel"], way), way)
    names = ["fail in some dtype", *(way.removeprefix("pass ") for way in _WAYS), "none"]
    counts = Counter(best.values())
    return [(name, counts[at]) for at, name in enumerate(names) if counts[at]]


def _kernels(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a line per kernel, with the status of each mode by dtype."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for row in report["rows"]:
        rows.setdefault(row["kernel"], {}).setdefault(row["dtype"], {})[row["mode"]] = row
    lines = []
    for name, by_dtype in sorted(rows.items(), key=lambda pair: pair[0].lower()):
        cells = {dtype: _cell(modes) for dtype, modes in by_dtype.items()}
        states = {cell["state"] for cell in cells.values()}
        worst = next(e for e in ("failed", "expected", "passed", "absent") if e in states)
        lines.append({"name": name, "cells": cells, "worst": worst})
    return lines


def _cell(modes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the content of a cell: a letter for each mode that passed, and a state."""
    letters, words, states = "", [], set()
    for mode in _MODES:
        row = modes.get(mode)
        if row is None:
            continue
        declined = f", {row['declined']} declined" * bool(row["declined"])
        words.append(
            f"{mode}: {row['status']} ({row['passed']} of {row['cases']} cases{declined})"
        )
        if row["status"] in PASSED:
            letters += row["status"].removeprefix("pass ")[0].upper()
            states.add("passed")
        elif row["status"] in BLOCKING and row["vendor"] in PASSED:
            letters += "~"
            states.add("expected")
            words[-1] += ", within a vendor's bounds"
        elif row["status"] in BLOCKING:
            letters += "\u2717"
            states.add("failed")
        elif row["status"] == "expected fail":
            letters += "!"
            states.add("expected")
    state = next((name for name in ("failed", "expected", "passed") if name in states), "absent")
    return {"text": letters or "\u00b7", "title": "; ".join(words), "state": state}


def _errors(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the largest error of each kernel in ulp, with its limit and a bar's width."""
    worst: dict[str, tuple[float, str]] = {}
    for row in report["rows"]:
        if row["mode"] == "native" and row["ulp"]:
            error = (row["ulp"], row["dtype"])
            worst[row["kernel"]] = max(worst.get(row["kernel"], (0.0, "")), error)
    known = tolerances()
    lines = []
    for name, (ulp, dtype) in sorted(worst.items(), key=lambda pair: -pair[1][0]):
        line = known.ulp.get(name)  # another package's kernel may have none
        width = 100 * min(1.0, math.log10(1 + ulp) / 3)  # 1000 ulp fill it
        lines.append(
            {
                "kernel": name,
                "dtype": dtype,
                "ulp": ulp,
                "limit": None if line is None else known.limit(line, dtype),
                "width": round(width, 2),
            }
        )
    return lines


def _slowest(report: Mapping[str, Any]) -> list[tuple[str, float]]:
    seconds: dict[str, float] = {}
    for row in report["rows"]:
        seconds[row["kernel"]] = seconds.get(row["kernel"], 0.0) + row["seconds"]
    return sorted(seconds.items(), key=lambda second: -second[1])[:_SLOWEST]


def _failures(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every described failure with the script, or else the command, that repeats it."""
    items = []
    for row in report["rows"]:
        if row["status"] in (*BLOCKING, "expected fail"):
            for failure in row["failures"]:
                text = script(report, row, failure)
                items.append({"row": row, "failure": failure, "script": text})
            if not row["failures"]:
                reason, _, where = row["reason"].partition("\n")
                text = f"{where}\n{row_command(report, row)}".lstrip("\n")
                bare = {"case": "", "message": reason}
                items.append({"row": row, "failure": bare, "script": text})
    return items
