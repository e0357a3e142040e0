"""A process ends by itself, or is ended with all that it started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from children import run


def start(tmp_path, code, limit=60.0):
    return run(
        [sys.executable, "-c", code],
        log=tmp_path / "log",
        limit=limit,
        environment=os.environ,
        folder=tmp_path,
        look=lambda: None,
    )


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("print('well')", 0, ""),
        ("raise SystemExit(3)", 3, "exit status 3"),
        ("import os; os.abort()", -6, "the process died of SIGABRT"),
    ],
)
def test_the_end_of_a_process_is_told(tmp_path, code, status, told):
    end = start(tmp_path, code)
    assert (end.status, end.told) == (status, told)


def test_the_output_is_in_the_log(tmp_path):
    start(tmp_path, "import sys; print('one'); sys.stdout.flush(); print('two', file=sys.stderr)")
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_a_process_whose_time_is_over_ends_with_its_children(tmp_path):
    grandchild = "import time; time.sleep(600)"
    code = (
        "import pathlib, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {grandchild!r}])\n"
        "pathlib.Path('child').write_text(str(child.pid))\n"
        "time.sleep(600)"
    )
    for limit in (2.0, 10.0, 50.0):  # a busy machine takes longer to begin
        end = start(tmp_path, code, limit)
        assert end.status is None
        assert "its share of the time" in end.told
        if (tmp_path / "child").exists():
            break
    state = Path("/proc", (tmp_path / "child").read_text(), "stat")
    deadline = time.monotonic() + 30
    while (
        state.exists() and state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    ):
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.05)
