"""Whole runs in processes of their own: reports, verdicts on crashes and hangs, the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.conformance.tests.installing import install

from tensorplug_conformance import cli
from tensorplug_conformance.checks import Target
from tensorplug_conformance.cli import main
from tensorplug_conformance.denominator import Selection, entries, rows
from tensorplug_conformance.reporting import report
from tensorplug_conformance.running.certify import certify, items_of
from tensorplug_conformance.running.opening import NotOpenedError, check_opens
from tensorplug_conformance.running.supervisor import Limits, supervise

if TYPE_CHECKING:
    from pathlib import Path

    from tensorplug_conformance.verdicts import Outcome

MISBEHAVING = "tensorplug_conformance.selftest.misbehaving"
FEW = Selection(("[AN]*",), ("float32",))  # Abs, Add, ArgMax, Atan, Neg


def statuses(result: dict[str, Any]) -> dict[str, str]:
    return {row["kernel"]: row["status"] for row in result["rows"] if row["mode"] == "native"}


def test_a_chatty_backend_is_no_pass() -> None:
    items = [("check", 0, "prints nothing"), ("check", 0, "opens, works, exits")]
    outcomes: list[Outcome] = supervise(
        Target("cpu", f"{MISBEHAVING}:prints"), items, 0, Limits(), lambda _outcome: None
    )
    verdicts = [outcome.verdict for outcome in outcomes]
    assert verdicts[0] is not None
    assert verdicts[0]["status"] == "fail"
    assert "hello from the driver" in verdicts[0]["message"]
    assert verdicts[1] is not None
    assert verdicts[1]["status"] == "pass"


def test_a_backend_that_is_not_installed_passes_nothing() -> None:
    result = certify(Target("nowhere"), 2, selection=FEW)
    assert set(statuses(result).values()) == {"fail"}
    assert "BackendNotInstalledError" in result["backend"]["error"]
    assert "nothing passed" in result["blocked_by"]
    jsonschema.validate(result, report.schema())


def test_the_command_writes_a_report_that_fits_the_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--backend", "cpu", "--level", "2", "--kernels", "Neg"]
    code = main([*arguments, "--dtypes", "float32,int32", "--report", str(tmp_path)])
    assert code == 0
    result = json.loads((tmp_path / "report.json").read_text("utf-8"))
    jsonschema.validate(result, report.schema())
    assert result["partial"] is True
    assert result["conformant"] is None
    assert result["denominator"]["rows"] == 2
    assert result["denominator"]["cases"] == result["totals"]["cases_passed"]
    assert result["backend"]["distribution"] == "tensorplug-cpu"
    assert "certifies nothing" in capsys.readouterr().out


def test_the_schema_refuses_what_is_no_report() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": 1}, report.schema())


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run"],
        ["run", "--backend", "cpu", "--level", "9"],
        ["run", "--backend", "cpu", "--dtypes", "float33"],
        ["run", "--backend", "cpu", "--kernels", " ,"],
        ["run", "--backend", "cpu", "--checks", " ,"],
        ["run", "--backend", "cpu", "--profile", "loose"],
        ["run", "--backend", "cpu", "--seed", "-1"],
        ["selftest", "--backend"],
    ],
)
def test_wrong_calls(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("globs", "fault"),
    [
        ("Neg,Nope*", "no kernel of the catalogue is called 'Nope*'"),
        ("Neg,Tanh", "level 2 has no rows of 'Tanh'; level 3 has: --level 3"),
        ("Ne[g],Cast,X", "no kernel of the catalogue is called 'X'"),
    ],
)
def test_a_pattern_of_kernels_that_finds_nothing_is_named(
    globs: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--backend", "cpu", "--level", "2", "--kernels", globs]) == 2
    assert fault in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "kinds", "names"),
    [
        (["--checks", "opens*"], {"check"}, {"opens again", "opens, works, exits"}),
        (["--checks", "opens*", "--kernels", "Neg"], {"check", "row"}, {"opens again", "Neg"}),
        (["--kernels", "Neg"], {"row"}, {"Neg"}),
        ([], {"check", "row"}, {"opens again", "Neg", "fork"}),
    ],
)
def test_checks_and_rows_are_selected_apart(
    arguments: list[str], kinds: set[str], names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Chosen(Exception):  # noqa: N818  # ends the run
        pass

    def certified(_target: Target, level: int, *, selection: Selection, **_more: Any) -> None:
        known = entries()
        raise Chosen(
            *(item for n in range(level + 1) for item in items_of(n, known, selection)[0])
        )

    monkeypatch.setattr(cli, "certify", certified)
    monkeypatch.setattr(cli, "check_opens", lambda _target, _limits: {})
    with pytest.raises(Chosen) as caught:
        main(["run", "--backend", "cpu", "--level", "2", *arguments])
    items = caught.value.args
    assert {item[0] for item in items} == kinds
    assert {item[2] if item[0] == "check" else item[1] for item in items} >= names


def test_a_selection_of_rows_says_that_checks_are_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = ["run", "--backend", "cpu", "--level", "2", "--jobs", "1"]
    left_out = "the checks of levels 0, 1 and 4 were left out; --checks 'GLOBS' runs them"
    assert main([*run, "--kernels", "Neg", "--dtypes", "int32"]) == 0
    assert left_out in capsys.readouterr().out.splitlines()
    assert main([*run, "--checks", "required dtypes"]) == 0
    assert left_out not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("glob", "fault"),
    [
        ("nope*", "no check is called 'nope*'"),
        ("flat memory: v*", "similar are 'flat memory: "),
        ("forc", "similar are 'fork'"),
        ("loops*", "level 4 has: --level 4"),
    ],
)
def test_a_pattern_of_checks_that_finds_nothing_is_named(
    glob: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--backend", "cpu", "--level", "2", "--checks", glob]) == 2
    assert fault in capsys.readouterr().out


# Backends that are not there ------------------------------------------------------------

BROKEN = {
    "absent": """
        from tensorplug.plugin import BackendUnavailableError, hookimpl

        @hookimpl
        def tensorplug_create_backend(device):
            raise BackendUnavailableError("no card [a1] here:\\nlooked in /dev/acme0")
    """,
    "unimportable": "import a_module_that_is_not_there",
    "old": "raise AssertionError('imported')",
    "fatal": """
        import os
        from tensorplug.plugin import hookimpl

        @hookimpl
        def tensorplug_create_backend(device):
            os.abort()
    """,
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with installed backends, none of which opens."""
    folder = tmp_path_factory.mktemp("broken")
    for name, source in BROKEN.items():
        core = "tensorplug<0.0.1" if name == "old" else "tensorplug"
        install(folder, source, name=name, requires=core)
    return folder


def _run(folder: Path, *arguments: str, **settings: str) -> tuple[int, list[str]]:
    """Return exit code and lines of ``run`` in a process whose output is a pipe."""
    kept = {name: item for name, item in os.environ.items() if not name.startswith("TENSORPLUG_")}
    path = os.pathsep.join([str(folder), *filter(None, [kept.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "tensorplug_conformance", "run", *arguments],
        env={**kept, "PYTHONPATH": path, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent", " is not available here: no card [a1] here: looked in /dev/acme0"),
        ("unimportable", "No module named 'a_module_that_is_not_there'"),
        ("old", "requires 'tensorplug<0.0.1'"),
        ("fatal", "the process died of signal 6"),
    ],
)
def test_a_backend_that_does_not_open_is_one_line(name: str, said: str, broken: Path) -> None:
    code, lines = _run(broken, "--backend", name, "--kernels", "Neg")
    assert (code, len(lines)) == (2, 1), lines
    assert lines[0].startswith("error: backend ")
    assert name in lines[0]
    assert said in lines[0]


def test_settings_that_leave_a_backend_out_are_one_line(broken: Path) -> None:
    code, lines = _run(broken, "--backend", "cpu", TENSORPLUG_DISABLE_PLUGINS="cpu")
    assert (code, len(lines)) == (2, 1)
    assert "TENSORPLUG_DISABLE_PLUGINS=cpu disables it" in lines[0]
    code, lines = _run(broken, "--backend", "cpu", TENSORPLUG_FALLBACK="maybe")
    assert (code, len(lines)) == (2, 1)
    assert "TENSORPLUG_FALLBACK='maybe': must be error, warn or allow" in lines[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope", "backend 'nope' is not installed. Any distribution can provide a backend, "),
        ("CPU", "backend 'CPU' is not installed. Did you mean 'cpu'?"),
        ("cpu:", "'cpu:' must name a device after the colon"),
        ("nope:1", "backend 'nope' is not installed."),
    ],
)
def test_an_unknown_backend_starts_nothing(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("a process or a run was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr("tensorplug_conformance.cli.certify", started)
    assert main(["run", "--backend", name]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"error: {said}")


def test_a_device_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--backend", "cpu:7", "--kernels", "Neg"]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("error: backend 'cpu:7' does not open: ")


def test_a_backend_that_hangs_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_hangs.py").write_text("import time\n\ndef opens():\n    time.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("tensorplug_conformance.running.supervisor._START", 1.0)
    with pytest.raises(
        NotOpenedError, match=r"'cpu' does not open: it hung: it did not end within 1 s"
    ):
        check_opens(Target("cpu", "acme_hangs:opens"), Limits(item=0.5))


def test_progress_in_a_log(tmp_path: Path) -> None:
    few = ("--kernels", "Neg,Abs", "--dtypes", "float32", "--jobs", "2", "--level", "2")
    code, lines = _run(tmp_path, "--backend", "cpu", *few)
    assert code == 0
    assert lines[0] == "backend 'cpu', level 2: 2 rows in 2 processes"
    assert re.fullmatch(
        r"1 of 2 done \(50%\), 0 failed, 0:00:\d\d elapsed, about .* left", lines[1]
    )
    assert re.fullmatch(r"2 of 2 done \(100%\), 0 failed, 0:00:\d\d elapsed", lines[2])
    assert lines[3].startswith("cpu (tensorplug-cpu ")


def test_several_patterns_of_kernels() -> None:
    known = entries()
    chosen = Selection(("Ne[g]", "R*Div", "Abs"), ("float32",), "native")
    taken = {row.kernel for row in rows(2, known) if chosen.takes(row)}
    assert taken == {"Neg", "RealDiv", "Abs"}
    assert chosen.partial
    assert not Selection().partial


def _row(kernel: str, status: str) -> dict[str, Any]:
    return {"kernel": kernel, "dtype": "float32", "mode": "native", "status": status}


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        ([_row("Neg", "pass native")], []),
        ([_row("Neg", "pass native"), _row("Abs", "fail")], ["1 rows: fail"]),
        ([_row("Neg", "pass native"), _row("Relu", "missing")], ["1 rows: missing"]),
        ([_row("Neg", "pass native"), _row("Relu", "fallback")], ["1 rows: fallback"]),
        ([_row("Neg", "pass native"), _row("Relu", "not claimed")], []),
        (
            [_row("Neg", "unsupported dtype"), _row("Abs", "pass native")],
            ["primitive Neg passed in no dtype"],
        ),
        ([_row("Relu", "unsupported dtype")], ["nothing passed"]),
        ([], ["nothing passed"]),
    ],
)
def test_only_passes_count(rows: list[dict[str, Any]], reasons: list[str]) -> None:
    assert report.blocked([], rows, 2) == reasons


def test_a_failed_check_blocks() -> None:
    checks = [{"check": "fork", "status": "fail"}]
    assert report.blocked(checks, [_row("Neg", "pass native")], 2) == ["check 'fork' failed"]
