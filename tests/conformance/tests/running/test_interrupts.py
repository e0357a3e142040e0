"""Runs that are interrupted, and go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tensorplug_conformance.cli import main
from tensorplug_conformance.denominator import Row
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.verification import verify
from tensorplug_conformance.running.journal import NAME, Journal, ResumeError
from tensorplug_conformance.verdicts import CheckVerdict, Outcome, RowVerdict

RUN = ("run", "--backend", "cpu", "--level", "2", "--jobs", "1", "--checks", "opens*")
ROWS = (*RUN, "--kernels", "[AF]*", "--dtypes", "int32,bool")
VERDICT = asdict(RowVerdict(Row("Neg", "float32", "gradient"), "fail", 1))
CHECK = asdict(CheckVerdict(0, "fork", "pass"))
CHANGES = ("seconds", "started", "asked_again")  # from run to run


def _begun(folder: Path, outcomes: int) -> subprocess.Popen[str]:
    """Return a run in a process group of its own, once it has so many outcomes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorplug_conformance", *ROWS, "--report", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    path = folder / NAME
    for _ in range(6000):
        if path.exists() and path.read_text("utf-8").count('"item"') >= outcomes:
            return process
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.01)
    raise AssertionError("the run does not begin")


def _descendants(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    children = list(map(int, listed))
    return [*children, *(one for child in children for one in _descendants(child))]


def _runs(pid: int) -> bool:
    """Return whether a process runs; one that has no parent any more may wait to be forgotten."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _journal(item: list[Any], verdict: Any) -> str:
    """Return the text of a journal with one outcome."""
    outcome = {"at": 1.0, "item": item, "verdict": verdict, "error": ""}
    return f'{{"run": {{}}}}\n{json.dumps(outcome)}\n'


def _lasting(content: dict[str, Any]) -> dict[str, Any]:
    """Return a report without times."""
    kept = {key: value for key, value in content.items() if key not in CHANGES}
    for part in ("rows", "checks"):
        kept[part] = [
            {key: value for key, value in one.items() if key != "seconds"} for one in content[part]
        ]
    return kept


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a run that was not interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    main([*ROWS, "--report", str(folder)])
    assert not (folder / NAME).exists()
    return report.read(folder)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_writes_what_it_has_and_goes_on(
    number: signal.Signals, whole: dict[str, Any], tmp_path: Path
) -> None:
    process = _begun(tmp_path, 4)
    workers = _descendants(process.pid)
    # As a terminal does, to the whole foreground group.
    os.killpg(process.pid, number)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "Traceback" not in text
    assert "interrupted, certifies nothing: " in text
    assert "rows and checks were not run" in text
    assert len(workers) > 1  # a worker, and its parent
    for _ in range(500):
        if not any(map(_runs, workers)):
            break
        time.sleep(0.01)
    assert not any(map(_runs, workers))
    content = report.read(tmp_path)
    jsonschema.validate(content, report.schema())
    assert content["interrupted"]
    assert content["conformant"] is None
    assert content["denominator"] == whole["denominator"]
    assert 4 <= len(content["rows"]) + len(content["checks"]) < len(whole["rows"])
    assert {row["status"] for row in content["rows"]} <= {"pass native"}  # none is made to fail
    assert verify(content) == ["the run was interrupted"]
    before = sum(one["seconds"] for one in content["rows"])
    assert main([*ROWS, "--report", str(tmp_path), "--resume"]) == 0
    after = report.read(tmp_path)
    assert _lasting(after) == _lasting(whole)
    for drawn in ("started", "asked_again"):  # once for a run
        assert after.get(drawn) == content.get(drawn)
    assert after["seconds"] > content["seconds"] > before
    assert not (tmp_path / NAME).exists()


@pytest.mark.slow
def test_a_killed_run_goes_on(
    whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = _begun(tmp_path, 3)
    process.kill()
    process.communicate()
    path = tmp_path / NAME
    with path.open("a") as file:
        file.write('{"at": 1.5, "item": ["row", "Ab')  # as of a write that was cut off
    done = path.read_text("utf-8").count('"verdict"')
    assert main([*ROWS, "--report", str(tmp_path), "--resume"]) == 0
    content = report.read(tmp_path)
    assert done >= 3
    assert f"{done} rows and checks are done already" in capsys.readouterr().out
    assert _lasting(content) == _lasting(whole)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--seed", "1"), "seed was 0, is 1"),
        (("--dtypes", "int32"), "selection dtypes was"),
        (("--item-limit", "99"), "item limit was 300.0, is 99.0"),
        (("--level", "3"), "level was 2, is 3"),
    ],
)
def test_only_the_same_run_goes_on(
    changed: tuple[str, str],
    said: str,
    journal: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [*ROWS, *changed, "--report", str(journal.parent), "--resume"]
    before = journal.read_bytes()
    assert main(arguments) == 2
    assert said in capsys.readouterr().out
    assert journal.read_bytes() == before


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a run that was killed."""
    folder = tmp_path_factory.mktemp("killed")
    process = _begun(folder, 1)
    process.kill()
    process.communicate()
    return folder / NAME


def test_another_version_of_the_backend_does_not_go_on(journal: Path, tmp_path: Path) -> None:
    lines = journal.read_text("utf-8").splitlines()
    header = json.loads(lines[0])["run"]
    older = {**header, "backend": {**header["backend"], "version": "0.0.1"}}
    (tmp_path / NAME).write_text(json.dumps({"run": older}) + "\n")
    resumed = Journal.resumed(tmp_path)
    with pytest.raises(ResumeError, match=r"backend version was 0\.0\.1"):
        resumed.begin(header)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "has no run to resume"),
        ("", "not the journal of a run"),
        ("{}\n", "not the journal of a run"),
        ('{"run": {}}\n[]\n', "not the journal of a run"),
        ('{"run": {}}\n{"item": 3}\n', "not the journal of a run"),
        ('{"run": 3}\n', "not the journal of a run"),
        ('{"run": {}}\n\0\0\n', "not the journal of a run"),
        ('{"run": {}}\n' + "[" * 10**5 + "\n", "not the journal of a run"),
        ('{"run": {}}\n{"backend": {"device": 3}}\n', "not the journal of a run"),
        (_journal(["row", "Neg", "float32", "native"], {"status": "pass"}), "it has other parts"),
        (_journal(["row", "Neg", "float32", "native"], {**VERDICT, "cases": -1}), "cases: "),
        (_journal(["row", "Neg", "float32", "native"], {**VERDICT, "ulp": "0"}), "not supported"),
        (_journal(["check", 0, "fork"], CHECK | {"check": "spawn"}), "it is of check 'spawn'"),
        (_journal(["other", 0, "fork"], CHECK), "nobody runs 'other'"),
    ],
)
def test_what_is_no_journal(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / NAME).write_text(text)
    assert main([*ROWS, "--report", str(tmp_path), "--resume"]) == 2
    assert said in capsys.readouterr().out


def test_resume_needs_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ROWS, "--resume"]) == 2
    assert "--report DIR" in capsys.readouterr().out


def test_seconds_add_up_over_interruptions(tmp_path: Path) -> None:
    item = ("row", "Neg", "float32", "native")
    lines = [
        {"run": {"started": "then"}},
        {"at": 7.5, "item": item, "verdict": None, "error": "it died"},
        {"resumed": True},
        {"backend": {"device": "Acme"}},
        {"at": 2.0, "item": [*item[:3], "gradient"], "verdict": VERDICT, "error": ""},
    ]
    (tmp_path / NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    resumed = Journal.resumed(tmp_path)
    assert resumed.seconds == 9.5
    assert resumed.introduced == {"device": "Acme"}
    assert resumed.outcomes[item] == Outcome(item, None, "it died")
    assert len(resumed.outcomes) == 2


def test_an_interrupt_before_the_first_item_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(target: object, _limits: object) -> None:
        del target
        raise KeyboardInterrupt

    monkeypatch.setattr("tensorplug_conformance.cli.check_opens", interrupted)
    assert main(list(ROWS)) == 130
    assert capsys.readouterr().out.splitlines() == ["interrupted"]
