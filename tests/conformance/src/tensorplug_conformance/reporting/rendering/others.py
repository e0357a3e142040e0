"""What all forms of a report say of the tests that others wrote."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.evidence import STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


COLUMNS: Final = ("tests", "pass", "cannot pass", "cannot be asked", "fail")
"""The heads of the table of groups: how many tests there are, and how many have each status."""


@dataclass(frozen=True, slots=True)
class Others:
    """A collection of tests, counted.

    ``groups``: a line for each group, its numbers in the order of ``COLUMNS``; ``whole`` is their
    sum. ``idle``: how many of those that pass ran no kernel of the backend, and so say nothing of
    it. ``failures``: the tests that fail; ``excused``: those that cannot pass or be asked.
    """

    about: Mapping[str, Any]
    groups: Sequence[tuple[str, Sequence[int]]]
    whole: Sequence[int]
    idle: int
    failures: Sequence[Mapping[str, Any]]
    excused: Sequence[Mapping[str, Any]]

    @property
    def versions(self) -> str:
        """The distributions and their versions: ``onnx 1.23.2``."""
        return ", ".join(f"{name} {version}" for name, version in self.about["versions"].items())


def others(report: Mapping[str, Any]) -> list[Others]:
    """Return the collections of a report; none if no other tests were run."""
    return [_counted(one) for one in report.get("evidence", ())]


def _counted(one: Mapping[str, Any]) -> Others:
    tests = one["tests"]
    counts: dict[str, Counter[str]] = {}
    for test in tests:
        counts.setdefault(test["group"], Counter())[test["status"]] += 1
    whole: Counter[str] = sum(counts.values(), Counter())
    return Others(
        one,
        [(group, _line(count)) for group, count in counts.items()],
        _line(whole),
        sum(test["status"] == "pass" and not test["kernels"] for test in tests),
        [test for test in tests if test["status"] == "fail"],
        [test for test in tests if test["status"] in ("known", "unsupported")],
    )


def _line(counts: Counter[str]) -> list[int]:
    return [counts.total(), *(counts[status] for status in STATUSES)]
