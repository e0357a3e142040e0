"""The reports of a step's program so far, in short, for ``result.json``."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


PASSED: Final = ("pass native", "pass widened", "pass decomposed", "pass gradient", "pass")
FAILED: Final = ("fail", "fallback", "missing")


def read(file: Path) -> list[dict[str, Any]]:
    """Return the records in ``file``: a list, or one in each complete line."""
    try:
        text = file.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    if text.startswith("["):
        found: list[dict[str, Any]] = json.loads(text)
        return found
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


def fold(step: str, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the results of ``step``."""
    return _FOLDS[step](records)


def failures(results: dict[str, Any]) -> list[dict[str, str]]:
    """Return what failed in a step's results, the first first: ``what`` and ``why``."""
    found: list[dict[str, str]] = results.get("failures", [])
    return found


def _facts(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"failures": []}
    for record in records:
        about = record["about"]
        found[about] = {key: value for key, value in record.items() if key != "about"}
    refused = found.get("device", {}).get("refused")
    if refused:
        found["failures"].append({"what": "trial of the driver", "why": refused})
    if "none" in found:
        found["failures"].append({"what": "choice of a device", "why": found["none"]["why"]})
    return found


def _conformance(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    levels: dict[str, dict[str, Any]] = {}
    found: dict[str, Any] = {"levels": levels, "failures": []}
    for record in records:
        if record["about"] == "level":
            counts = {"items": record["items"], "done": 0, "passed": 0, "failed": 0, "other": {}}
            levels[str(record["level"])] = counts
        elif record["about"] == "outcome":
            _count(levels[str(record["level"])], record, found["failures"])
        elif record["about"] == "report":
            found["report"] = {key: record[key] for key in ("level", "conformant", "blocked_by")}
        elif record["about"] == "error":
            found["failures"].append({"what": "the suite", "why": record["why"]})
        elif record["about"] == "none":
            found["none"] = record["why"]
    return found


def _count(counts: dict[str, Any], outcome: dict[str, Any], failed: list[dict[str, str]]) -> None:
    verdict = outcome["verdict"] or {"status": "fail"}
    status = verdict["status"]
    counts["done"] += 1
    if status in PASSED:
        counts["passed"] += 1
    elif status in FAILED:
        counts["failed"] += 1
        failed.append({"what": " ".join(map(str, outcome["item"][1:])), "why": _why(outcome)})
    else:
        counts["other"][status] = counts["other"].get(status, 0) + 1


def _why(outcome: dict[str, Any]) -> str:
    verdict = outcome["verdict"]
    if verdict is None:
        return str(outcome["error"])
    if verdict.get("failures"):
        first = verdict["failures"][0]
        return f"{first['case']}: {first['message']}"
    return str(verdict.get("message") or verdict.get("reason") or verdict["status"])


def _tests(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    outcomes = [record for record in records if record["about"] == "outcome"]
    counts = Counter(outcome["outcome"] for outcome in outcomes)
    files: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        file = outcome["test"].partition("::")[0].rpartition("/")[2]
        line = files.setdefault(file, {"passed": 0, "failed": 0, "skipped": 0, "crashed": 0})
        line[outcome["outcome"]] += 1
    return {
        "collected": next(
            (record["count"] for record in records if record["about"] == "collected"), None
        ),
        "counts": dict(counts),
        "files": dict(sorted(files.items())),
        "failures": [
            {"what": outcome["test"].rpartition("/")[2], "why": outcome["message"]}
            for outcome in outcomes
            if outcome["outcome"] in ("failed", "crashed")
        ]
        + [
            {"what": "pytest", "why": record["why"]}
            for record in records
            if record["about"] == "error"
        ],
    }


def _rates(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    kinds: dict[str, list[dict[str, Any]]] = {"ceiling": [], "rate": [], "error": []}
    for record in records:
        kinds[record["about"]].append({key: record[key] for key in record if key != "about"})
    return {
        "ceilings": kinds["ceiling"],
        "rates": kinds["rate"],
        "failures": [{"what": kind["what"], "why": kind["why"]} for kind in kinds["error"]],
    }


def _benchmarks(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "rows": [record for record in records if "error" not in record],
        "failures": [
            {"what": record["workload"], "why": record["error"]}
            for record in records
            if "error" in record
        ],
    }


_FOLDS: Final[dict[str, Callable[[Sequence[dict[str, Any]]], dict[str, Any]]]] = {
    "facts": _facts,
    "level2": _conformance,
    "level3": _conformance,
    "level4": _conformance,
    "webgpu": _conformance,
    "tests": _tests,
    "rates": _rates,
    "benchmarks": _benchmarks,
}
