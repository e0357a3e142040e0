"""The report: JSON, from which everything else is rendered."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections import Counter
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import numpy as np

from tensorplug.tensors.scratch_files import scratch_file
from tensorplug_conformance import evidence, extensions
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import PROFILES, bounds
from tensorplug_conformance.denominator import Selection
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.reporting import expectations as expectations_
from tensorplug_conformance.reporting.quoting import printable
from tensorplug_conformance.reporting.schema import LEFT_OUT, schema
from tensorplug_conformance.verdicts import BLOCKING, PASSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tensorplug_conformance.comparing.vendor import Profile
    from tensorplug_conformance.reporting.expectations import Expectation
    from tensorplug_conformance.verdicts import Item, Outcome

__all__ = [
    "SCHEMA",
    "ReportError",
    "assemble",
    "blocked",
    "environment",
    "faults",
    "limited",
    "parse",
    "read",
    "registered",
    "schema",
    "verdict",
    "write",
]

SCHEMA: Final = 4
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
NAME: Final = "report.json"
_LONGEST: Final = 200  # characters of a fault, which quotes what is wrong


def assemble(
    *,
    suite: str,
    backend: Mapping[str, Any],
    level: int,
    seed: int,
    examples: int,
    draw: int,
    selection: Selection,
    denominator: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    seconds: float,
    started: str,
    expectations: Iterable[Expectation] = (),
    profile: Profile = "strict",
    missing: Sequence[Item] = (),
    collections: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return the report as data, its judgement under both profiles included.

    ``draw``: the seed of the sample that a plain process was asked again. ``profile``: the one
    that decides the exit code of the run. ``missing``: what was not run, because the run was
    interrupted. ``collections``: descriptions of the collections of tests that were run, whose
    outcomes judge nothing.
    """
    checks = [_check(outcome) for outcome in outcomes if outcome.item[0] == "check"]
    rows = [_row(outcome) for outcome in outcomes if outcome.item[0] == "row"]
    if not missing:
        checks += _uncovered(backend, denominator, level, selection)
    unmet = expectations_.apply(rows, expectations, datetime.now(UTC).date())
    others = [outcome for outcome in outcomes if outcome.item[0] == "evidence"]
    what = "rows, checks and tests" if collections else "rows and checks"
    reasons = [f"{len(missing)} {what} were not run"] if missing else []
    strict, vendor = (
        [*blocked(checks, rows, level, profile=profile), *unmet, *reasons] for profile in PROFILES
    )
    partial = selection.partial or bool(missing)
    return {
        "schema": SCHEMA,
        "suite": {
            "version": suite,
            "tolerances": tolerances().version,
            "vendor": bounds().version,
            "seed": seed,
            "examples": examples,
        },
        "asked_again": {"seed": draw},
        "backend": {key: value for key, value in backend.items() if key != "kernels"},
        "tensorplug": metadata.version("tensorplug"),
        "level": level,
        "partial": partial,
        **({"registered": True} if selection == Selection(registered=True) else {}),
        "interrupted": bool(missing),
        "profile": profile,
        "conformant": None if partial else not strict,
        "blocked_by": strict,
        "vendor": {
            "conformant": None if partial else not vendor,
            "blocked_by": vendor,
        },
        "started": started,
        "seconds": round(seconds, 3),
        "environment": environment(),
        "denominator": {key: denominator[key] for key in ("rows", "cases", "sha256")},
        "totals": {
            "rows": dict(Counter(row["status"] for row in rows)),
            "checks": dict(Counter(check["status"] for check in checks)),
            "cases_passed": sum(row["passed"] for row in rows),
        },
        "coverage": _coverage(outcomes),
        **({"evidence": evidence.assembled(collections, others)} if collections else {}),
        "checks": checks,
        "rows": rows,
    }


def _coverage(outcomes: Iterable[Outcome]) -> dict[str, list[int]]:
    """Return, by pair of properties, how many pairs of levels all rows cover, of how many."""
    by_pair: dict[str, list[int]] = {}
    for outcome in outcomes:
        of = (outcome.verdict or {}).get("coverage", {})
        for kind, counts in of.items():
            by_pair[kind] = [
                sum(two) for two in zip(counts, by_pair.get(kind, [0, 0]), strict=True)
            ]
    return dict(sorted(by_pair.items()))


def limited(report: Mapping[str, Any]) -> str:
    """Return which tensors the backend declares to be too large, if any, and who needed them."""
    largest = report["backend"].get("largest_buffer")
    if largest is None:
        return ""
    beyond = sum(row.get("beyond", 0) for row in report["rows"])
    return f"a tensor has {largest:,} bytes at most, it declares: {beyond} cases need a larger one"


def registered(report: Mapping[str, Any]) -> str:
    """Return how many kernels a partial certificate is about; empty if the report is none."""
    if not report.get("registered"):
        return ""
    passed = {row["kernel"] for row in report["rows"] if row["vendor"] in PASSED}
    others = len(passed - PRIMITIVES)
    more = f" and {others} more" if others else ""
    return f"{len(passed & PRIMITIVES)} of {len(PRIMITIVES)} kernels{more}"


def verdict(report: Mapping[str, Any], profile: Profile) -> Mapping[str, Any]:
    """Return ``conformant`` and ``blocked_by`` of a report under a profile."""
    judged: Mapping[str, Any] = report if profile == "strict" else report["vendor"]
    return judged


def blocked(
    checks: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    level: int,
    *,
    profile: Profile = "strict",
) -> list[str]:
    """Return why the backend does not conform at the level; nothing if it does.

    Checks are the same under both profiles.
    """
    if profile == "vendor":
        rows = [{**row, "status": row["vendor"]} for row in rows]
    reasons = [f"check {check['check']!r} failed" for check in checks if check["status"] == "fail"]
    counts = Counter(row["status"] for row in rows)
    against = (*BLOCKING, "expected fail")
    reasons += [f"{counts[status]} rows: {status}" for status in against if counts[status]]
    passed = {(row["kernel"], row["dtype"]) for row in rows if row["status"] in PASSED}
    if level >= 2 and not passed and (rows or not checks):  # checks may run alone
        reasons.append("nothing passed")
    bare = {
        row["kernel"]
        for row in rows
        if row["kernel"] in PRIMITIVES and row["status"] not in (*against, "unsupported dtype")
    }
    for name in sorted({row["kernel"] for row in rows if row["kernel"] in PRIMITIVES} - bare):
        if not any(row["kernel"] == name and row["status"] in against for row in rows):
            reasons.append(f"primitive {name} passed in no dtype")
    return reasons


def _check(outcome: Outcome) -> dict[str, Any]:
    if outcome.verdict is not None:
        return dict(outcome.verdict)
    _, level, name = outcome.item
    return {
        "level": level,
        "check": name,
        "status": "fail",
        "message": outcome.error,
        "seconds": 0.0,
    }


def _row(outcome: Outcome) -> dict[str, Any]:
    _, kernel, dtype, mode, *_ = outcome.item
    entry: dict[str, Any] = {
        "kernel": kernel,
        "dtype": dtype,
        "mode": mode,
        "status": "fail",
        "cases": 0,
        "passed": 0,
        "declined": 0,
        "unsupported": 0,
        "beyond": 0,
        "examples": 0,
        "ulp": 0.0,
        "seconds": 0.0,
        "reason": outcome.error,
        "failed": [],
        "failures": [],
        "vendor": "fail",
        "tolerated": [],
        "pairs": [0, 0],
    }
    if outcome.verdict is not None:
        entry.update({key: value for key, value in outcome.verdict.items() if key not in LEFT_OUT})
    entry["ulp"] = None if not np.isfinite(entry["ulp"]) else round(float(entry["ulp"]), 4)
    return entry


def _uncovered(
    backend: Mapping[str, Any], denominator: Mapping[str, Any], level: int, selection: Selection
) -> list[dict[str, Any]]:
    """Return the check that every kernel of the engine has cases."""
    if level < 3 or selection.partial:
        return []
    without = sorted(set(backend.get("kernels", ())) - set(denominator["kernels"]))
    message = f"no cases for {', '.join(without)}" if without else ""
    return [
        {
            "level": 3,
            "check": "every kernel has cases",
            "status": "fail" if without else "pass",
            "message": message,
            "seconds": 0.0,
        }
    ]


def environment() -> dict[str, str]:
    """Return versions and names of all that a result may depend on, backends apart."""
    return {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": str(os.cpu_count()),
        "wide float": f"{np.finfo(np.longdouble).nmant + 1} bits",
        "extensions": ", ".join(extensions.versions()),
        "settings": ", ".join(
            sorted(name for name in os.environ if name.startswith("TENSORPLUG_"))
        ),
    }


def write(report: Mapping[str, Any], folder: Path) -> Path:
    """Write the report into ``folder``, which is created if necessary; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    text = json.dumps(report, indent=1, allow_nan=False) + "\n"
    with scratch_file(path.resolve()) as file:  # a report of before is whole until this one is
        file.write(text.encode())
    return path


def read(path: Path) -> dict[str, Any]:
    """Return the report at ``path``: of that file, or of the folder that ``write`` wrote.

    Reports come from strangers, and pages and programs are made from them, so only a report that
    fulfils the schema is returned.

    Raises:
        ReportError: there is no report, it has another version, or it does not fulfil the schema.

    """
    content = parse(path)
    broken = faults(content)
    if broken:
        raise ReportError(f"{path} does not fulfil the schema of reports: {broken[0]}")
    return content


def parse(path: Path) -> dict[str, Any]:
    """Return the report at ``path``, whether or not it fulfils the schema.

    Raises:
        ReportError: there is none, or its version is another one.

    """
    place = path / NAME if path.is_dir() else path
    try:
        data = json.loads(place.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{place} is not a report: {error}") from error
    except RecursionError:
        raise ReportError(f"{place} is not a report: it is nested too deeply") from None
    if _SURROGATE.search(json.dumps(data, ensure_ascii=False)):
        raise ReportError(f"{place} is not a report: it has half of a surrogate pair")
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ReportError(f"{place} is not a report of schema {SCHEMA}")
    return data


def faults(content: Any) -> list[str]:
    """Return where ``content`` does not fulfil the schema; nothing if it does."""
    validator = jsonschema.Draft202012Validator(schema())
    try:
        return [
            f"{'/'.join(map(str, error.absolute_path)) or 'report'}: "
            f"{printable(error.message).replace(chr(10), ' ')[:_LONGEST]}"
            for error in validator.iter_errors(content)
        ]
    except RecursionError:
        return ["report: it is nested too deeply"]


class ReportError(Exception):
    """A file is not a report that this version reads."""
