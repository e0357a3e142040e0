"""Backends that attack what judges them: their parent, their events, their output."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tensorplug_conformance import cli
from tensorplug_conformance.checks import CheckFailedError, Target, processes
from tensorplug_conformance.cli import main
from tensorplug_conformance.denominator import Row
from tensorplug_conformance.reporting import report
from tensorplug_conformance.running import keeper, supervisor
from tensorplug_conformance.running.journal import NAME, Journal
from tensorplug_conformance.running.process import StrangeError, _event
from tensorplug_conformance.running.supervisor import Attendant, Limits, supervise
from tensorplug_conformance.selftest import hostile
from tensorplug_conformance.verdicts import CheckVerdict, Outcome, RowVerdict

if TYPE_CHECKING:
    from pathlib import Path

NEG = ("row", "Neg", "float32", "native")
FORK = ("check", 0, "fork")
ROW = asdict(RowVerdict(Row("Neg", "float32", "native"), "pass native", 3, passed=3))
CHECK = asdict(CheckVerdict(0, "fork", "pass"))


@pytest.mark.slow  # the self test tries the same attacks
@pytest.mark.skipif(os.name != "posix", reason="processes have no such parents there")
def test_a_backend_that_kills_its_parent_or_damages_its_events_gets_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def target(backend: str, draw: int) -> Target:
        return Target(backend, f"{hostile.__name__}:hostile", draw=draw)

    monkeypatch.setattr(cli, "Target", target)
    run = ["run", "--backend", "cpu", "--level", "2", "--jobs", "1", "--mode", "native"]
    few = ["--kernels", "Add,Log,Neg,Pow", "--dtypes", "float32", "--report", str(tmp_path)]
    assert main([*run, *few]) == 1
    content = report.read(tmp_path)
    jsonschema.validate(content, report.schema())
    reasons = {row["kernel"]: row["reason"] for row in content["rows"] if row["status"] == "fail"}
    assert reasons.keys() == {"Neg", "Log"}
    assert "ended its parent process" in reasons["Neg"]
    assert "it damaged the file of its events" in reasons["Log"]
    assert " in case " in reasons["Log"]
    assert content["blocked_by"] == ["2 rows: fail"]
    assert not content["interrupted"]
    assert not (tmp_path / NAME).exists()


@pytest.mark.skipif(os.name != "posix", reason="there are no such parents elsewhere")
@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("exit 3", "ended with exit status 3"),
        ("kill -9 $$", "died of signal 9"),
        ("kill -9 $PPID; sleep 0.2", ""),
    ],
)
def test_the_parent_tells_how_a_command_ended(command: str, ending: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-I", "-S", keeper.__file__, "/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout.strip() == ending
    assert (ended.returncode < 0) == (not ending)


LINES = [
    b"",
    b"\0\0\0",
    b"{",
    b"\xff",
    b"3",
    b"[" * 100_000,
    b'{"event": "surprise"}',
    b'{"event": ["done"]}',
    b'{"item": 3}',
    b'{"event": "begin", "item": ' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: repr(line[:20]))
def test_what_is_no_event(line: bytes) -> None:
    with pytest.raises(StrangeError, match=r"^it damaged the file of its events: ") as caught:
        _event(line)
    assert len(str(caught.value)) < 400


def test_half_of_a_surrogate_pair_does_not_reach_a_report() -> None:
    event = _event(b'{"event": "broken", "item": 0, "error": "a\\udc80\\ud83d\\ude00"}')
    assert event["error"] == "a?\U0001f600"


def begin(number: int | None) -> dict[str, Any]:
    return {"event": "begin", "item": number}


def done(number: int, verdict: Any) -> dict[str, Any]:
    return {"event": "done", "item": number, "verdict": verdict}


WRONG = {
    "of another item": (NEG, [begin(8)], "an event of item 8"),
    "of no item": (NEG, [begin(7), {"event": "broken"}], "an event of item None"),
    "of an item twice": (NEG, [begin(7), done(7, ROW), done(7, ROW)], "item 7"),
    "no verdict": (NEG, [begin(7), done(7, None)], "it has other parts"),
    "a part of a verdict": (NEG, [done(7, {"status": "pass native"})], "it has other parts"),
    "another kind of verdict": (NEG, [done(7, CHECK)], "it has other parts"),
    "another status": (NEG, [done(7, ROW | {"status": "perfect"})], "status: "),
    "no number": (NEG, [done(7, ROW | {"passed": "3"})], "passed: "),
    "not a number": (NEG, [done(7, ROW | {"seconds": float("nan")})], "not JSON compliant"),
    "text for a number": (NEG, [done(7, ROW | {"ulp": "0"})], "not supported"),
    "a foreign failure": (NEG, [done(7, ROW | {"failures": [3]})], "failures/0: "),
    "foreign coverage": (NEG, [done(7, ROW | {"coverage": {"x": [1]}})], "short"),
    "coverage that is none": (NEG, [done(7, ROW | {"coverage": 3})], "values"),
    "another check": (FORK, [done(7, CHECK | {"check": "spawn"})], "it is of check 'spawn'"),
    "a foreign backend": (NEG, [{"event": "backend", "backend": {"device": 3}}], "device: "),
    "a backend by another name": (
        NEG, [{"event": "backend", "backend": {"name": "x"}}], "a name of its own",
    ),
    "foreign kernels": (NEG, [{"event": "backend", "backend": {"kernels": [3]}}], "kernels"),
}  # fmt: skip
RIGHT: dict[str, tuple[Any, list[Any], list[Outcome]]] = {
    "a row": (NEG, [begin(7), done(7, ROW)], [Outcome(NEG, ROW)]),
    "an infinite error": (
        NEG,
        [begin(7), done(7, ROW | {"ulp": float("inf")})],
        [Outcome(NEG, ROW | {"ulp": float("inf")})],
    ),
    "a check": (FORK, [begin(None), begin(7), done(7, CHECK)], [Outcome(FORK, CHECK)]),
    "nothing yet": (NEG, [begin(7)], []),
}


class Told:
    """Stands for a worker process that has told some events."""

    events: list[Any]

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def feed(self, items: Any) -> None: ...

    def ended(self) -> bool:
        return False

    def heard(self) -> list[Any]:
        return self.events

    def check(self) -> None: ...

    def during(self) -> str:
        return " in case 'edges'"


def attended(
    item: Any, events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[Attendant, list[Outcome]]:
    monkeypatch.setattr(supervisor, "WorkerProcess", Told)
    monkeypatch.setattr(supervisor, "is_outside", lambda _item: False)
    monkeypatch.setattr(Told, "events", events, raising=False)
    one = Attendant(Target("cpu"), 0, Limits(), lambda _said: None)
    one.give([(7, item), (9, item)])
    return one, [outcome for _, outcome in one.finished()]


@pytest.mark.parametrize(("item", "events", "said"), WRONG.values(), ids=WRONG)
def test_events_that_no_worker_tells_are_a_verdict(
    item: Any, events: list[Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, outcomes = attended(item, events, monkeypatch)
    assert one.over
    assert outcomes[-1].verdict is None
    assert outcomes[-1].error.startswith("it damaged the file of its events: ")
    assert outcomes[-1].error.endswith(" in case 'edges'")
    assert said in outcomes[-1].error


@pytest.mark.parametrize(("item", "events", "expected"), RIGHT.values(), ids=RIGHT)
def test_events_of_workers_are_none(
    item: Any, events: list[Any], expected: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, outcomes = attended(item, events, monkeypatch)
    assert not one.over
    assert outcomes == expected


def test_without_a_place_for_its_files_no_worker_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    outcomes = supervise(Target("cpu"), [NEG, FORK], 0, Limits(), lambda _outcome: None)
    assert [outcome.verdict for outcome in outcomes] == [None, None]
    for outcome in outcomes:
        assert "not run: no worker starts: " in outcome.error
        assert "nowhere" in outcome.error


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no full device")
def test_a_run_goes_on_when_its_journal_finds_the_disk_full(tmp_path: Path) -> None:
    (tmp_path / NAME).symlink_to("/dev/full")
    journal = Journal(tmp_path)
    journal.begin({})
    journal.add(Outcome(NEG, ROW))
    assert journal.lost == "[Errno 28] No space left on device"
    assert journal.outcomes == {NEG: Outcome(NEG, ROW)}
    journal.close()


@pytest.mark.slow
def test_a_report_that_cannot_be_written_is_an_error_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "--backend", "cpu", "--level", "2", "--kernels", "Neg", "--dtypes", "int32"]
    assert main([*run, "--report", str(tmp_path)]) == 0
    before = report.read(tmp_path)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main([*run, "--report", str(tmp_path)]) == 2
    assert "error: the report cannot be written: [Errno 28]" in capsys.readouterr().out
    assert report.read(tmp_path) == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_report_where_no_folder_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    run = ["run", "--backend", "cpu", "--level", "2", "--kernels", "Neg", "--dtypes", "int32"]
    assert main([*run, "--report", str(tmp_path / "file" / "out")]) == 2
    assert "cannot be written" in capsys.readouterr().out


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_check_whose_process_prints_without_end_fails(
    stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PRINTED", 1 << 20)
    program = f"import sys\nwhile True: sys.{stream}.write('x' * 4096)"
    with pytest.raises(CheckFailedError, match=r"^it printed more than 1 MiB$"):
        processes._ended([sys.executable, "-c", program], 60.0)
