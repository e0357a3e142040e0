"""Verifying a report, comparing two, repeating a failure; the commands that do so."""

from __future__ import annotations

import copy
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.tests.reports import FAILURE, row, sample

from tensorplug_conformance import cli
from tensorplug_conformance.checks import Target
from tensorplug_conformance.cli import main
from tensorplug_conformance.reporting.differences import differences
from tensorplug_conformance.reporting.reproduction import UnknownCaseError, reproduce, script
from tensorplug_conformance.reporting.verification import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MISBEHAVING = "tensorplug_conformance.selftest.misbehaving"


def test_a_report_that_holds() -> None:
    assert verify(sample()) == []


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = to

    return change


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a failure made a pass": (_set("rows", 2, "status", to="pass native"), "do not add up"),
    "cases that passed": (_set("rows", 0, "passed", to=10), "do not add up"),
    "the total": (_set("totals", "cases_passed", to=1), "totals: cases_passed"),
    "the reasons": (_set("blocked_by", to=[]), "does not say: 1 rows: fail"),
    "the judgement": (_set("conformant", to=True), "conformant is True"),
    "a row left out": (lambda found: found["rows"].pop(0), "denominator: rows is 7"),
    "a whole run": (_set("partial", to=False), "rows are missing"),
    "the hash": (_set("denominator", "sha256", to="0" * 64), "denominator: sha256"),
    "the suite": (_set("suite", "version", to="9.9"), "the report has version 9.9"),
    "a kernel": (_set("rows", 0, "kernel", to="Absolute"), "no cases here for Absolute"),
    "a row twice": (lambda found: found["rows"].append(found["rows"][0]), "two rows for"),
    "a stranger's key": (_set("signed", to="yes"), "schema: report"),
    "a status": (_set("rows", 0, "status", to="fine"), "schema: rows/0/status"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_does_not_hold_is_named(name: str) -> None:
    change, message = FORGERIES[name]
    content = copy.deepcopy(sample())
    change(content)
    faults = verify(content)
    assert any(message in fault for fault in faults), faults


def test_the_command_verifies(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(sample()), "utf-8")
    assert main(["verify", str(tmp_path)]) == 0
    path.write_text(json.dumps({**sample(), "blocked_by": []}), "utf-8")
    assert main(["verify", str(path)]) == 1
    path.write_text("{}", "utf-8")
    assert main(["verify", str(path)]) == 2
    assert main(["verify", str(tmp_path / "none.json")]) == 2


def test_differences() -> None:
    old, new = sample(), sample()
    neg, exp, tanh = new["rows"][2], new["rows"][1], new["rows"][4]
    neg.update(row("Neg", "float32", "native", "pass native"))
    exp["ulp"] = 7.0
    tanh.update(row("Tanh", "float32", "native", "fallback"))
    new["rows"].pop(0)
    new["rows"].append(row("Sin", "float32", "native", "pass native"))
    new["suite"]["seed"] = 3
    changes = differences(old, new)
    assert changes.better == [(("Neg", "float32", "native"), "fail", "pass native")]
    assert changes.worse == [(("Tanh", "float32", "native"), "pass native", "fallback")]
    assert changes.error == [(("Exp", "float64", "native"), 2.75, 7.0)]
    assert changes.gone == [("Abs", "float32", "native")]
    assert changes.new == [("Sin", "float32", "native")]
    assert changes.notes == ["seed: 0 before, 3 now"]
    assert changes.regressed


def test_the_command_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(sample()), "utf-8")
    new.write_text(json.dumps(sample()), "utf-8")
    assert main(["diff", str(old), str(new)]) == 0
    assert "no row changed" in capsys.readouterr().out
    worse = sample()
    worse["rows"][0].update(row("Abs", "float32", "native", "missing"))
    new.write_text(json.dumps(worse), "utf-8")
    assert main(["diff", str(old), str(new)]) == 1
    assert "worse Abs float32 native: pass native, now missing" in capsys.readouterr().out


def test_the_command_renders_again_and_accepts(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(sample()), "utf-8")
    assert main(["report", str(path), "--output", str(tmp_path / "out")]) == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} >= {"report.html", "repros"}
    known = tmp_path / "known.toml"
    accept = ["accept", str(path), "--output", str(known), "--reason", "driver"]
    assert main(accept) == 0
    once = known.read_text("utf-8")
    assert main(accept) == 0
    assert known.read_text("utf-8") == once  # nothing twice


def test_a_script_repeats_its_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = sample()
    content["backend"]["name"] = "cpu"
    failure = {**FAILURE, "case": "edges", "inputs": FAILURE["inputs"][:1], "attributes": {}}
    path = tmp_path / "neg.py"
    path.write_text(script(content, content["rows"][2], failure), "utf-8")
    assert main(["repro", str(path)]) == 0  # on the clean backend it passes
    said = capsys.readouterr().out
    assert "-inf" in said
    assert "cpu: Neg float32 native, case 'edges': passes" in said


def test_a_case_that_fails_fails_again(capsys: pytest.CaptureFixture[str]) -> None:
    factory = f"{MISBEHAVING}:negates_nothing"
    assert reproduce("cpu", "Neg", "float32", "native", "edges", factory=factory) == 1
    *before, last = capsys.readouterr().out.splitlines()
    assert "wrong; first at" in "\n".join(before)
    assert last == "cpu: Neg float32 native, case 'edges': fails"


def test_a_script_shows_large_results_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = sample()
    content["backend"]["name"] = "cpu"
    attributes = {"shape": "(50, 60)", "value": "1.5", "dtype": "'float32'"}
    failure = {**FAILURE, "case": "vector", "inputs": [], "attributes": attributes}
    path = tmp_path / "fill.py"
    path.write_text(script(content, row("Fill", "float32", "native", "fail"), failure), "utf-8")
    main(["repro", str(path)])
    said = capsys.readouterr().out
    assert "..., 1.5" in said
    assert len(said.splitlines()) < 12


def test_the_verdict_comes_last_though_the_call_raises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = sample()
    content["backend"]["name"] = "cpu"
    failure = {**FAILURE, "case": "edges", "inputs": [], "attributes": {}}
    path = tmp_path / "neg.py"
    path.write_text(script(content, content["rows"][2], failure), "utf-8")
    assert main(["repro", str(path)]) == 0
    *before, last = capsys.readouterr().out.splitlines()
    assert "Error" in before[0]
    assert last == "cpu: Neg float32 native, case 'edges': passes"


@pytest.mark.parametrize("which", [("Negation", "edges"), ("Neg", "no such case")])
def test_a_case_of_another_suite(which: tuple[str, str]) -> None:
    with pytest.raises(UnknownCaseError):
        reproduce("cpu", which[0], "float32", "native", which[1])


def test_a_script_without_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n", "utf-8")
    assert main(["repro", str(tmp_path / "other.py")]) == 2
    assert main(["repro", str(tmp_path / "none.py")]) == 2


PASSES = "print('it passes'); raise SystemExit(0)"
FAILS = "raise SystemExit(1)"
CRASHES = "import os; os.kill(os.getpid(), 9)"
ENDS = "x = 1"


@pytest.mark.parametrize(
    ("scripts", "code", "said"),
    [
        ([PASSES, PASSES], 0, []),
        ([FAILS, PASSES], 1, []),
        ([FAILS, ENDS, PASSES], 2, ["1.py is not a script that this suite wrote"]),
        pytest.param(
            [CRASHES, PASSES],
            1,
            ["0.py: fails: the process died of SIGKILL"],
            marks=pytest.mark.skipif(sys.platform == "win32", reason="processes die of signals"),
        ),
    ],
    ids=["pass", "one fails", "one gives no verdict", "one crashes"],
)
def test_several_scripts_run_apart(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    scripts: list[str],
    code: int,
    said: list[str],
) -> None:
    files = [tmp_path / f"{number}.py" for number in range(len(scripts))]
    for file, text in zip(files, scripts, strict=True):
        file.write_text(text, "utf-8")
    assert main(["repro", *map(str, files)]) == code
    output = capfd.readouterr().out
    assert output.count("it passes") == scripts.count(PASSES)
    for text in said:
        assert text in output


def test_a_run_with_expectations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expected failure is not a pass; the exit code says that nothing new is wrong."""
    known = tmp_path / "known.toml"
    known.write_text('[[expect]]\nkernel = "Neg"\nreason = "why"\n', "utf-8")
    run = ["run", "--backend", "cpu", "--level", "2", "--kernels", "Neg", "--dtypes", "int8"]
    assert main([*run, "--expect", str(known), "--report", str(tmp_path)]) == 1
    reasons = json.loads((tmp_path / "report.json").read_text("utf-8"))["blocked_by"]
    assert reasons == ["expected to fail, but does not: Neg"]
    factory = f"{MISBEHAVING}:negates_nothing"
    monkeypatch.setattr(cli, "Target", lambda name, **more: Target(name, factory, **more))
    assert main([*run, "--expect", str(known), "--report", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert [row["status"] for row in data["rows"]] == ["expected fail"]
    assert data["blocked_by"] == ["1 rows: expected fail", "nothing passed"]
