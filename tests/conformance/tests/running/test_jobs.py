"""Several workers at once: the division of items, crashes, and equal reports for any number."""

from __future__ import annotations

import os
import textwrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from tensorplug_conformance.checks import Target
from tensorplug_conformance.cli import main
from tensorplug_conformance.denominator import Selection
from tensorplug_conformance.running import certify as certification
from tensorplug_conformance.running.certify import certify
from tensorplug_conformance.running.supervisor import Limits, supervise
from tensorplug_conformance.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tensorplug_conformance.verdicts import Item

MISBEHAVING = "tensorplug_conformance.selftest.misbehaving"
FEW = Selection(("Relu", "Softplus"), ("float32", "int32"))
ROWS = [("row", name, "float32", "native") for name in ("Abs", "Neg", "Floor", "Sqrt", "Exp")]
READS_STDIN = """
    import sys
    from tensorplug.plugins.assembly import build_engine

    def reads():
        assert sys.stdin.read() == ""
        return build_engine()
"""

SIGNS = """
    import os, pathlib
    from tensorplug.plugins.assembly import build_engine

    def signs():
        pathlib.Path(os.environ["SIGNED"], f"process-{os.getpid()}").touch()
        return build_engine()
"""


def told(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without times."""
    untimed = {key: value for key, value in report.items() if key not in ("started", "seconds")}
    for part in ("checks", "rows"):
        untimed[part] = [{**entry, "seconds": 0} for entry in report[part]]
    return untimed


def tried(
    items: list[tuple[Any, ...]],
    jobs: int,
    factory: str | None = None,
    limits: Limits | None = None,
    series: Mapping[Item, str] = MappingProxyType({}),
) -> tuple[list[Outcome], list[Outcome], list[dict[str, Any]]]:
    """Return the outcomes, those reported one by one, and the introductions."""
    heard: list[Outcome] = []
    introductions: list[dict[str, Any]] = []
    outcomes = supervise(
        Target("cpu", factory),
        items,
        0,
        limits or Limits(),
        heard.append,
        introductions.append,
        jobs,
        series,
    )
    return outcomes, heard, introductions


def status(outcome: Outcome) -> str:
    return "lost" if outcome.verdict is None else str(outcome.verdict["status"])


@pytest.mark.slow
def test_the_report_does_not_depend_on_how_many_work_at_it() -> None:
    one, many = (certify(Target("cpu"), 3, selection=FEW, jobs=jobs) for jobs in (1, 2))
    assert told(one) == told(many)
    assert one["totals"]["cases_passed"] > 50


@pytest.mark.slow
def test_a_crash_costs_its_own_item_alone() -> None:
    outcomes, heard, introductions = tried(ROWS, 3, f"{MISBEHAVING}:dies")
    assert [outcome.item for outcome in outcomes] == ROWS
    lost = {outcome.item[1] for outcome in outcomes if outcome.verdict is None}
    assert lost == {"Neg"}
    assert {status(outcome) for outcome in outcomes} == {"lost", "pass native"}
    assert sorted(outcome.item for outcome in heard) == sorted(ROWS)
    assert [introduction["distribution"] for introduction in introductions] == ["tensorplug-cpu"]


@pytest.mark.parametrize(("series", "processes"), [(dict.fromkeys(ROWS, "one"), 1), ({}, 3)])
def test_a_series_runs_in_one_process(
    series: dict[Any, str], processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "signing.py").write_text(textwrap.dedent(SIGNS))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SIGNED", str(tmp_path))
    outcomes, _, _ = tried(ROWS, 3, "signing:signs", series=series)
    assert [status(outcome) for outcome in outcomes] == ["pass native"] * len(ROWS)
    assert len(list(tmp_path.glob("process-*"))) == processes


def test_a_series_begins_first_and_ends_last() -> None:
    series = dict.fromkeys((ROWS[2], ROWS[1], ROWS[4]), "one")
    _, heard, _ = tried(ROWS, 1, series=series)
    assert [outcome.item[1] for outcome in heard] == ["Neg", "Abs", "Sqrt", "Floor", "Exp"]


@pytest.mark.slow
def test_a_series_goes_on_where_its_process_ended() -> None:
    outcomes, _, _ = tried(ROWS, 1, f"{MISBEHAVING}:dies", series=dict.fromkeys(ROWS[1:4], "one"))
    assert [status(outcome) for outcome in outcomes] == [
        "lost" if row[1] == "Neg" else "pass native" for row in ROWS
    ]


def test_more_workers_than_items_do_no_harm() -> None:
    outcomes, heard, _ = tried(ROWS[:1], 4)
    assert [status(outcome) for outcome in outcomes] == ["pass native"]
    assert heard == outcomes


def test_no_items_need_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent")
    assert tried([], 2) == ([], [], [])


def test_where_no_worker_starts_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    outcomes, heard, _ = tried(ROWS, 2)
    assert [outcome.item for outcome in outcomes] == ROWS
    assert {status(outcome) for outcome in outcomes} == {"lost"}
    texts = [outcome.error for outcome in outcomes]
    assert texts[0] == "the process ended with exit status 1"
    assert texts[-1].startswith("not run:")
    assert len(heard) == len(ROWS)


def test_when_the_time_of_a_level_is_spent_nothing_passes() -> None:
    outcomes, _, _ = tried(ROWS, 2, limits=Limits(item=0.01))
    assert {status(outcome) for outcome in outcomes} == {"lost"}
    assert outcomes[-1].error.startswith("not run: the time limit of the level ran out")


def test_a_level_has_time_for_its_items() -> None:
    assert Limits().level(0) == 1800
    assert Limits().level(4080) == 1800 + 5 * 4080
    assert Limits(item=600).level(4080) == 2 * Limits().level(4080)


def test_where_memory_is_measured_one_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def supervised(_target: Target, items: list[Any], *_: Any, jobs: int, **__: Any) -> Any:
        asked.append(jobs)
        return [Outcome(item, None, "not tried") for item in items]

    monkeypatch.setattr(certification, "supervise", supervised)
    certify(Target("cpu"), 2, jobs=4)
    assert asked == [4, 1, 4]


def test_a_backend_cannot_read_the_items_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (line.removeprefix("    ") for line in READS_STDIN.splitlines())
    (tmp_path / "acme_reads.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    outcomes, _, _ = tried(ROWS[:2], 1, "acme_reads:reads", Limits(item=30.0))
    assert {status(outcome) for outcome in outcomes} == {"pass native"}


@pytest.mark.parametrize(
    "arguments",
    [["--jobs", "0"], ["--jobs", "two"], ["--item-limit", "0"], ["--item-limit", "inf"]],
)
def test_wrong_calls(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", "--backend", "cpu", *arguments])
    assert caught.value.code == 2
    assert arguments[1] in capsys.readouterr().err


def test_the_command_hands_jobs_and_limit_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handed_on: dict[str, Any] = {}

    def certified(*_: Any, **options: Any) -> dict[str, Any]:
        handed_on.update(options)
        return certify(Target("cpu"), 2, selection=Selection(("Neg",), ("bool",)))

    monkeypatch.setattr("tensorplug_conformance.cli.certify", certified)
    main(["run", "--backend", "cpu", "--jobs", "3", "--item-limit", "7.5"])
    assert (handed_on["jobs"], handed_on["limits"]) == (3, Limits(item=7.5))
    capsys.readouterr()
