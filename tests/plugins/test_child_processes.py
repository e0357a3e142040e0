"""Processes that tensorplug starts: what lies in the user's folder takes no module's place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensorplug.system import child_processes

SHADOWED = ("numpy", "types", "queue", "json", "runpy", "socket", "random", "signal", "pluggy")
PACKAGES = Path(child_processes.__file__).parents[2]

DOCTOR = """
import sys
from tensorplug.command_line.commands import main
sys.exit(main(["doctor", {name!r}, "--json"]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "script", "named", "expected"),
    [
        (["", "/lib"], None, "", ["/lib", "{here}"]),
        (["{here}", "/lib"], None, "", ["/lib", "{here}"]),  # python -m
        (["/programs", "/lib"], "/programs/main.py", "", ["/lib", "/programs"]),
        (["/app.pyz", "/lib"], "/app.pyz/__main__.py", "", ["/lib", "/app.pyz"]),
        (["/tests", "{here}", "/lib"], "/bin/pytest", "", ["/tests", "/lib", "{here}"]),
        (["{here}", "/lib"], None, "/x:{here}", ["/x", "{here}", "/lib"]),  # the user says so
        (["/x", "{here}", "/lib"], None, "/x:.", ["/x", "{here}", "/lib"]),
        (["", "/lib"], None, "/for:/children", ["/for", "/children", "/lib", "{here}"]),
        ([f"{PACKAGES}", "/lib"], f"{PACKAGES}/main.py", "", [f"{PACKAGES}", "/lib"]),
        (["/lib", None, Path("/other")], None, "", ["/lib"]),  # imports ignore these, too
    ],
)
def test_the_search_path(path, script, named, expected, folder, monkeypatch):
    def placed(entry):
        return entry.format(here=folder) if isinstance(entry, str) else entry

    monkeypatch.setattr(sys, "path", [placed(entry) for entry in path])
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=script))
    monkeypatch.setenv("PYTHONPATH", placed(named).replace(":", os.pathsep))
    assert child_processes.search_path() == [placed(entry) for entry in expected]


def test_a_module_runs_as_main_with_its_arguments(folder):
    (folder / "chosen.py").write_text(
        "import sys, pickle\n"
        "class Local: pass\n"
        "print(__name__, sys.argv[1:], sys.flags.safe_path, type(pickle.loads("
        "pickle.dumps(Local()))).__module__)\n",
        encoding="utf-8",
    )
    for name in SHADOWED:
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong one')", encoding="utf-8")
    path = list(sys.path)
    try:
        sys.path.insert(0, "")
        command = [sys.executable, *child_processes.module_arguments("chosen", "a b", "-c")]
    finally:
        sys.path[:] = path
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "__main__ ['a b', '-c'] True __main__\n", done.stderr


def test_doctor_in_a_folder_with_modules_of_such_names(site, good, folder):
    site.install(good)
    for name in SHADOWED:
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong one')", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", DOCTOR.format(name="good")],
        env={**os.environ, "PYTHONPATH": str(site.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    lines = json.loads(done.stdout)
    assert {(line["backend"], "the wrong one" in line["finding"]) for line in lines} == {
        ("good", False)
    }


def test_doctor_finds_a_plugin_beside_the_program(site, good):
    site.install(good)
    (site.path / "program.py").write_text(DOCTOR.format(name="good"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(site.path / "program.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    (line, *_) = json.loads(done.stdout)
    assert line["backend"] == "good"
    assert "not installed" not in line["finding"]
