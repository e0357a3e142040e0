"""What changed from one report to another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.verdicts import PASSED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


_MORE: Final = 2.0  # times the earlier error: from this factor on, a row is named
_BY_VENDOR: Final = "{} within a vendor's bounds"
_FLOOR: Final = 1.0  # ulp: smaller errors are not named

Key = tuple[str, str, str]


@dataclass(slots=True)
class Differences:
    """Rows, as (kernel, dtype, mode), by what changed, and tests of others that both reports have.

    ``worse``: passed before and do not now, strictly or else within a vendor's bounds. ``better``:
    the other way round. ``other``: another status, neither of them a pass. ``gone`` and ``new``:
    only in one report. ``error``: passed, with at least twice the error in ulp. ``notes``: that
    the reports are not of one kind.
    """

    worse: list[tuple[Key, str, str]] = field(default_factory=list)
    better: list[tuple[Key, str, str]] = field(default_factory=list)
    other: list[tuple[Key, str, str]] = field(default_factory=list)
    gone: list[Key] = field(default_factory=list)
    new: list[Key] = field(default_factory=list)
    error: list[tuple[Key, float, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def regressed(self) -> bool:
        """Whether anything that passed now fails, or is no longer tried."""
        return bool(self.worse or self.gone)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Differences:
    """Return what is different in ``new``."""
    both = {one["name"] for one in old.get("evidence", ())} & {
        one["name"] for one in new.get("evidence", ())
    }
    before, after = ({**_rows(report), **_tests(report, both)} for report in (old, new))
    changes = Differences(notes=_notes(old, new))
    changes.gone = sorted(key for key in before.keys() - after.keys() if _passed(before[key]))
    changes.new = sorted(after.keys() - before.keys())
    for key in sorted(before.keys() & after.keys()):
        one, other = before[key], after[key]
        change = (key, one["status"], other["status"])
        if _passed(one) and not _passed(other):
            changes.worse.append(change)
        elif _passed(other) and not _passed(one):
            changes.better.append(change)
        elif not _passed(one) and one["vendor"] in PASSED and other["vendor"] not in PASSED:
            changes.worse.append((key, _BY_VENDOR.format(one["vendor"]), other["vendor"]))
        elif not _passed(one) and other["vendor"] in PASSED and one["vendor"] not in PASSED:
            changes.better.append((key, one["vendor"], _BY_VENDOR.format(other["vendor"])))
        elif one["status"] != other["status"]:
            changes.other.append(change)
        elif _passed(one) and _grew(one["ulp"], other["ulp"]):
            changes.error.append((key, one["ulp"], other["ulp"]))
    return changes


def _rows(report: Mapping[str, Any]) -> dict[Key, Mapping[str, Any]]:
    return {(row["kernel"], row["dtype"], row["mode"]): row for row in report["rows"]}


def _tests(report: Mapping[str, Any], names: Collection[str]) -> dict[Key, Mapping[str, Any]]:
    """Return the tests of others as rows, under (collection, group, test)."""
    return {
        (one["name"], test["group"], test["test"]): {
            "status": test["status"],
            "vendor": test["status"],
            "ulp": 0.0,
        }
        for one in report.get("evidence", ())
        for test in one["tests"]
        if one["name"] in names
    }


def _passed(row: Mapping[str, Any]) -> bool:
    return row["status"] in (*PASSED, "pass")


def _grew(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return after is None and before is not None
    return after > _FLOOR and after >= _MORE * before


def _notes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    pairs = {
        "backend": (old["backend"]["name"], new["backend"]["name"]),
        "device": (old["backend"].get("device"), new["backend"].get("device")),
        "suite": (old["suite"]["version"], new["suite"]["version"]),
        "tolerances": (old["suite"]["tolerances"], new["suite"]["tolerances"]),
        "vendors' bounds": (old["suite"]["vendor"], new["suite"]["vendor"]),
        "level": (old["level"], new["level"]),
        "seed": (old["suite"]["seed"], new["suite"]["seed"]),
        "examples": (old["suite"]["examples"], new["suite"]["examples"]),
    }
    versions = [
        {one["name"]: one["versions"] for one in report.get("evidence", ())}
        for report in (old, new)
    ]
    for name in versions[0].keys() & versions[1].keys():
        pairs[name] = (versions[0][name], versions[1][name])
    return [f"{name}: {a} before, {b} now" for name, (a, b) in pairs.items() if a != b]
