"""Files of known failures, and their effect on a report."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.tests.reports import row, sample

from tensorplug_conformance.cli import main
from tensorplug_conformance.reporting.expectations import (
    Expectation,
    ExpectationError,
    accepted,
    apply,
    read,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 11, 21)


def failing(*cases: str, **more: Any) -> dict[str, Any]:
    return row("Neg", "float32", "native", "fail", failed=list(cases), **more)


@pytest.mark.parametrize(
    "entry",
    [
        Expectation("Neg", "why"),
        Expectation("Neg", "why", ("float32",), ("native",), ("a", "b")),
        Expectation("Neg", "why", cases=("a", "b"), expires=TODAY),
    ],
)
def test_a_failure_that_is_expected(entry: Expectation) -> None:
    outcome = failing("a", "b")
    assert apply([outcome], [entry], TODAY) == []
    assert (outcome["status"], outcome["reason"]) == ("expected fail", "why")


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (Expectation("Neg", "why", cases=("a",)), None),  # "b" is left
        (Expectation("Neg", "why", ("float64",)), "expected to fail, but does not: Neg float64"),
        (Expectation("Neg", "why", modes=("gradient",)), "does not: Neg gradient"),
        (Expectation("Exp", "why"), "expected to fail, but does not: Exp"),
    ],
)
def test_a_failure_that_is_not(entry: Expectation, fault: str | None) -> None:
    outcome = failing("a", "b")
    faults = apply([outcome], [entry], TODAY)
    assert outcome["status"] == "fail"
    assert faults == [] if fault is None else faults[0].endswith(fault)


def test_two_entries_may_share_a_row() -> None:
    outcome = failing("a", "b")
    entries = [Expectation("Neg", "one", cases=("a",)), Expectation("Neg", "two", cases=("b",))]
    assert apply([outcome], entries, TODAY) == []
    assert outcome["reason"] == "one; two"


def test_what_passes_again_is_stale() -> None:
    passing = row("Neg", "float32", "native", "pass native")
    entry = Expectation("Neg", "why", cases=("a",))
    assert apply([passing], [entry], TODAY) == ["expected to fail, but does not: Neg 'a'"]
    some = failing("a")
    entry = Expectation("Neg", "why", cases=("a", "b"))
    assert apply([some], [entry], TODAY) == ["expected to fail, but does not: Neg case 'b'"]


def test_what_is_over() -> None:
    entry = Expectation("Neg", "why", expires=date(2026, 11, 20))
    assert apply([failing("a")], [entry], TODAY) == ["expectation expired on 2026-11-20: Neg"]


def test_a_crash_has_no_case_and_is_expected_as_a_whole() -> None:
    outcome = failing(reason="died of signal 11")
    assert apply([outcome], [Expectation("Neg", "driver")], TODAY) == []
    assert outcome["status"] == "expected fail"
    named = failing(reason="died of signal 11")
    apply([named], [Expectation("Neg", "driver", cases=("a",))], TODAY)
    assert named["status"] == "fail"


def test_a_file_reads_back(tmp_path: Path) -> None:
    entries = [
        Expectation("Neg", 'a "quoted"\nreason \\', ("float32",), ("native",), ("é <1>",)),
        Expectation("Exp", "x", issue="https://example.org/7", expires=TODAY),
    ]
    write(entries, tmp_path / "known.toml")
    assert read(tmp_path / "known.toml") == entries


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[expect]]\nkernel = 'Neg'", "entry 1: reason must be a non-empty text"),
        ("[[expect]]\nkernel = 'Neg'\nreason = ' '", "reason must be a non-empty text"),
        ("[[expect]]\nkernel = 'Neg'\nreason = 'x'\ncase = 'y'", "unknown key case"),
        ("[[expect]]\nkernel = 'Neg'\nreason = 'x'\ncases = 'y'", "cases must be a list"),
        ("[[expect]]\nkernel = 'Neg'\nreason = 'x'\ndtypes = []", "dtypes is empty"),
        ("[[expect]]\nkernel = 'Neg'\nreason = 'x'\nexpires = '2026'", "expires must be a day"),
        ("expected = 1", "unknown expected"),
        ("[[expect", "known.toml"),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ExpectationError, match=message):
        read(path)
    assert main(["run", "--backend", "cpu", "--expect", str(path)]) == 2


def test_accepting_a_report() -> None:
    entries = accepted(sample(), "new driver", "#7", TODAY)
    cases = ("edges <&>", "large")
    assert entries == [
        Expectation("Neg", "new driver", ("float32",), ("native",), cases, "#7", TODAY)
    ]
