"""Backends that are right only while they are being examined."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.tests.installing import install

from tensorplug_conformance.checks import CheckFailedError, NotMeasuredError, Target, checks
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying import plain
from tensorplug_conformance.trying.plain import PlainProcessError, ask, drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.checks import Check

CHECK = "asked again by a plain process"
ACME = """
    import inspect, os, sys
    import numpy as np
    from tensorplug.plugin import KernelTable, hookimpl, specs
    from tensorplug_cpu.backend import CpuBackend
    from tensorplug_cpu.plugin import TABLES

    wrong = KernelTable()

    class Acme(CpuBackend):
        name = "acme"

    class Clean(KernelTable):
        def __iter__(self):
            return (e for table in TABLES for e in table if e.spec is not specs.MULTIPLY)

    def above():
        pid, found = os.getppid(), ""
        while pid > 1:
            with open(f"/proc/{pid}/cmdline") as file:
                found += file.read()
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        return found

    def told():
        return TELL

    @wrong.register(specs.MULTIPLY)
    def multiply(a, b):
        result = np.asarray(a * b)
        if not ("conformance" in told() or "pytest" in told()):
            result = np.zeros_like(result)
        return result

    @hookimpl
    def tensorplug_create_backend(device):
        return Acme()

    @hookimpl
    def tensorplug_kernels():
        return KERNELS
"""
SHOWN = "(Clean(), wrong)"
HIDDEN = "(Clean(),) if 'conformance' in told() else (Clean(), wrong)"
TELLS = {
    "modules": "repr([name for name in sys.modules if 'numpy' not in name])",
    "stack": "repr([frame.filename for frame in inspect.stack(0)])",
    "command": "repr(sys.orig_argv)",
    "environment": "repr(dict(os.environ))",
    "folder": "os.getcwd() + repr(os.listdir())",
    "ancestors": "above()",
}
ASK = f"""
from dataclasses import replace
from tensorplug_conformance.checks import Target, checks
from tensorplug_conformance.running.worker import Worker
worker = Worker(Target("acme", draw=5), 0)
parts = [check.id for check in checks(2) if check.id.startswith({CHECK!r})]
worker.target = replace(worker.target, falls_back=FALLS_BACK)
verdict = worker.check(2, parts[sorted(worker.known).index("Multiply") % len(parts)])
row = Worker(Target("acme", falls_back=FALLS_BACK), 0).row("Multiply", "int32", "native")
print(verdict.status, verdict.message, row.status, sep="\\n")
"""


@pytest.fixture(scope="module")
def cpu() -> Iterator[Session]:
    session = Session(engine_factory(None), "cpu")
    yield session
    session.close()


@pytest.mark.parametrize(
    "tell",
    [
        pytest.param(tell, marks=[pytest.mark.slow] if at > 1 else [])
        for at, tell in enumerate(TELLS)
    ],
)
def test_a_backend_that_knows_the_examiner_is_caught(tell: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders say whose they are
        status, message, row = _ran(Path(name), tell)
    assert row == "pass native", "the saboteur must know the examiner"
    assert status == "fail"
    assert "Multiply" in message
    assert "--again-seed 5" in message


def test_a_wrong_kernel_that_is_hidden_from_the_examiner_is_caught() -> None:
    """Where a backend need not have all kernels, it could leave out those that are wrong."""
    with tempfile.TemporaryDirectory() as name:
        status, message, row = _ran(Path(name), "environment", HIDDEN, falls_back=True)
    assert row == "not claimed", "the saboteur must know the examiner"
    assert status == "fail"
    assert message == "a plain process has kernels that are hidden here: Multiply"


def _ran(
    tmp_path: Path, tell: str, kernels: str = SHOWN, *, falls_back: bool = False
) -> tuple[str, str, str]:
    """Return the status of the check, its message, and the status of a row."""
    folder = tmp_path / "site"
    install(folder, ACME.replace("TELL", TELLS[tell]).replace("KERNELS", kernels))
    here = tmp_path / "conformance"  # the examiner's folder
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ASK.replace("FALLS_BACK", str(falls_back))],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(folder), "RUN": "conformance"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    status, *message, row = done.stdout.splitlines() or [done.stderr]
    return status, "\n".join(message), row


@pytest.mark.parametrize("level", [2, 3])
def test_the_sample_is_drawn_by_its_seed(level: int, cpu: Session) -> None:
    known = dict(sorted(entries().items())[::9])
    names = [
        [(row, case.id) for _, row, case in drawn(cpu, known, level, draw)] for draw in (1, 1, 2)
    ]
    assert names[0] == names[1]
    assert set(names[0]) != set(names[2])
    kernels = {row.kernel for row, _ in names[0]}
    expected = {name for name in known if (name in PRIMITIVES) == (level == 2)}
    assert kernels == expected - {"NotRun"}


def asking() -> Check:
    return next(check for check in checks(2) if check.id.startswith(CHECK))


@pytest.fixture(scope="module")
def minimal() -> Iterator[Session]:
    session = Session(engine_factory(None), "minimal")
    yield session
    session.close()


def test_right_answers_pass_and_the_note_says_how_many(minimal: Session) -> None:
    note = asking().run(Target("minimal", draw=3), lambda: minimal)
    assert note is not None
    cases, _, rest = note.partition(" ")
    assert int(cases) > 200
    assert rest == "cases, --again-seed 3"


def test_what_no_time_is_left_for_is_noted(
    minimal: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the program stands still for ten calls, and then all time is over."""
    lines = "import time\ncalled = iter([0.0] * 11)\ntime.monotonic = lambda: next(called, 1e9)\n"
    monkeypatch.setattr(plain, "PROGRAM", lines + plain.PROGRAM)
    note = asking().run(Target("minimal", draw=3), lambda: minimal)
    assert re.fullmatch(r"10 cases, --again-seed 3; no time was left for \d\d\d more", note or "")


def test_a_backend_too_slow_for_any_call_fails(
    minimal: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "_BEGINNING", -1.0)
    with pytest.raises(CheckFailedError, match="no call ended in time"):
        asking().run(Target("minimal", draw=3), lambda: minimal)


def test_an_engine_that_is_no_plugin_is_not_measured() -> None:
    with pytest.raises(NotMeasuredError, match="not an installed plugin"):
        asking().run(Target("cpu", "somewhere:engine"), lambda: pytest.fail("opened"))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('hello')", "it printed 'hello"),
        ("raise SystemExit(3)", "it ended with status 3"),
        ("raise OSError('no device')", "no device"),
        ("import os; os.abort()", "it ended with status 134"),
        ("import time; time.sleep(60)", "it hung: it did not end within 1 s"),
    ],
)
@pytest.mark.parametrize("run", [plain._run_apart, plain._run_as_child])
def test_a_program_that_does_not_get_to_its_end(
    program: str, message: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``_run_as_child`` is for platforms on which every process has a parent."""
    monkeypatch.setattr(plain, "PROGRAM", program)
    monkeypatch.setattr(plain, "_run_apart", run)
    if "abort" in program and run is plain._run_as_child:
        message = "it ended with status -6"  # what a shell calls 134
    with pytest.raises(PlainProcessError, match=message):
        ask("cpu", [], 1.0 if "sleep" in program else 60.0)
