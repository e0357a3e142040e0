"""Comparing outcomes with the table of expected failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Expected:
    """Failures with one reason: ``failing`` tests whose names start with one of ``tests``."""

    tests: tuple[str, ...]
    failing: int
    reason: str


@dataclass(frozen=True)
class Verdict:
    """The counts of outcomes, and what differs from the table: one message for each difference."""

    counts: Mapping[str, int]
    differences: Sequence[str]


def read(entries: Iterable[Mapping[str, Any]]) -> list[Expected]:
    """Return the entries of the table for one project.

    Raises:
        ValueError: an entry lacks tests, a positive number or a reason, or has other keys.

    """
    found = []
    for entry in entries:
        complete = entry.keys() == {"tests", "failing", "reason"}
        if not (complete and entry["tests"] and entry["failing"] > 0 and entry["reason"]):
            raise ValueError(f"an entry needs tests, failing > 0 and a reason, got {entry}")
        found.append(Expected(tuple(entry["tests"]), entry["failing"], entry["reason"]))
    return found


def judge(outcomes: Mapping[str, tuple[str, str]], expected: Sequence[Expected]) -> Verdict:
    """Compare outcomes, and the messages of failures, with the table.

    Each failing test belongs to the first entry that names it.
    """
    failing: list[list[str]] = [[] for _ in expected]
    differences = []
    for name, (outcome, message) in sorted(outcomes.items()):
        if outcome != "failed":
            continue
        for names, entry in zip(failing, expected, strict=True):
            if name.startswith(entry.tests):
                names.append(name)
                break
        else:
            differences.append(f"fails, but is not in the table: {name}: {message}")
    for names, entry in zip(failing, expected, strict=True):
        if len(names) != entry.failing:
            listed = "".join(f"\n    {name}: {outcomes[name][1]}" for name in names[:40])
            differences.append(
                f"{len(names)} tests fail instead of {entry.failing}: {', '.join(entry.tests)} "
                f"({entry.reason}){listed}"
            )
    if not outcomes:
        differences.append("no tests ran")
    return Verdict(Counter(outcome for outcome, _ in outcomes.values()), differences)
