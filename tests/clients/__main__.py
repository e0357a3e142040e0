"""Run other projects' own tests on tensorplug, and compare with the table ``expected.toml``.

``python -m tests.clients [NAME ...]``, in the root of the repository. The exit code is 1 if a test
fails that the table does not expect to, or one passes that it expects to fail, or a project could
not be tested at all. ``--requirements`` prints what pip must install before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import recording
from .projects import PROJECTS, SUITE, Project
from .verdicts import judge, read

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("expected.toml")
MOST = 50  # differences that are printed for each project
ALSO = ("hypothesis", "ndindex", "pandas", "pooch", "pytest-timeout", "pytest-xdist")


class DidNotRunError(Exception):
    """Tests could not be run, or not to the end."""


def main() -> int:
    options = _parser().parse_args()
    table = tomllib.loads(TABLE.read_text())
    if options.requirements:
        print(*(f"{name}=={number}" for name, number in table["versions"].items()), *ALSO)
        return 0
    wrong = False
    for name in options.names or [project.name for project in PROJECTS] + [SUITE]:
        began = time.monotonic()
        try:
            outcomes = _run_suite(table[SUITE], options) if name == SUITE else _run(name, options)
        except DidNotRunError as error:
            print(f"{name}: DID NOT RUN: {error}", flush=True)
            wrong = True
            continue
        entries = table.get("expected", {}).get(name, [])
        verdict = judge(outcomes, read(entries))
        counts = ", ".join(f"{count} {what}" for what, count in sorted(verdict.counts.items()))
        print(f"{name}: {counts}; {time.monotonic() - began:.0f} s", flush=True)
        for difference in verdict.differences[:MOST]:
            print(f"  {difference}", flush=True)
        if len(verdict.differences) > MOST:
            print(f"  and {len(verdict.differences) - MOST} others", flush=True)
        wrong = wrong or bool(verdict.differences)
    return int(wrong)


def _run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the outcomes of a project's tests.

    Raises:
        DidNotRunError: it is not installed in the version of the table, or did not finish.

    """
    project = next(project for project in PROJECTS if project.name == name)
    wanted = tomllib.loads(TABLE.read_text())["versions"][name]
    try:
        installed = version(name)
    except PackageNotFoundError:
        installed = "not installed"
    if installed != wanted:
        raise DidNotRunError(f"the table is for {wanted}, but here it is {installed}")
    folder = project.folder()
    with tempfile.TemporaryDirectory() as scratch:
        _write_configuration(project, Path(scratch, "pytest.ini"))
        arguments = [
            *("-c", str(Path(scratch, "pytest.ini")), f"--rootdir={folder.parent}"),
            *(f"-p{plugin}" for plugin in project.plugins),
            *project.options,
            *map(str, project.find(folder)),
        ]
        # What these projects take for the default of every namespace but PyTorch's.
        return _pytest(arguments, Path(scratch), options, "float64", project.default_int)


def _write_configuration(project: Project, path: Path) -> None:
    lines = ["[pytest]", f"filterwarnings = {project.warnings}", "markers ="]
    path.write_text(
        "\n".join([*lines, *(f"    {marker}" for marker in project.markers), ""]), encoding="utf-8"
    )


def _run_suite(source: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Return the outcomes of the standard's test suite at the commit of the table.

    Raises:
        DidNotRunError: it could not be cloned, or did not finish.

    """
    with tempfile.TemporaryDirectory() as scratch:
        checkout = options.suite or Path(scratch, SUITE)
        if options.suite is None:
            _clone(source["url"], source["commit"], checkout)
        found = _git("-C", str(checkout), "rev-parse", "HEAD").strip()
        if found != source["commit"]:
            raise DidNotRunError(f"{checkout} is at {found}, the table is for {source['commit']}")
        os.environ["ARRAY_API_TESTS_MODULE"] = "tensorplug"
        arguments = ["-ptests.clients.on_suite", "--max-examples=20", "--disable-deadline"]
        arguments += ["array_api_tests"]
        return _pytest(arguments, checkout, options, "float32", "int32")


def _clone(url: str, commit: str, folder: Path) -> None:
    _git("clone", "--quiet", url, str(folder))
    _git("-C", str(folder), "checkout", "--quiet", commit)
    _git("-C", str(folder), "submodule", "--quiet", "update", "--init")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise DidNotRunError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _pytest(
    arguments: list[str],
    folder: Path,
    options: argparse.Namespace,
    default_float: str,
    default_int: str,
) -> dict[str, Any]:
    """Run pytest in ``folder``; return outcome and message of each test.

    Raises:
        DidNotRunError: it crashed, collected no tests, or took too long.

    """
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "outcomes.json")
        environ = os.environ | {
            recording.FILE: str(file),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "SCIPY_ARRAY_API": "1",
            "TENSORPLUG_BACKEND": "cpu",
            "TENSORPLUG_DEFAULT_FLOAT": default_float,
            "TENSORPLUG_DEFAULT_INT": default_int,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--tb=no", "-ptests.clients.recording"),
            *("-pno:cacheprovider", "--timeout=120", f"--numprocesses={options.jobs}"),
            *arguments,
        ]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=60 * options.minutes,
            )
        except subprocess.TimeoutExpired:
            raise DidNotRunError(f"not finished after {options.minutes} minutes") from None
        if done.returncode not in (0, 1) or not file.exists():
            said = (done.stdout + done.stderr)[-3000:]
            raise DidNotRunError(f"pytest ended with {done.returncode}:\n{said}")
        outcomes: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return outcomes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    known = [*(project.name for project in PROJECTS), SUITE]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--jobs", default="auto", help="processes of pytest (auto)")
    parser.add_argument("--minutes", type=float, default=60, help="limit for each project (60)")
    parser.add_argument("--suite", type=Path, help="a checkout of the suite; cloned if not given")
    parser.add_argument("--requirements", action="store_true", help="print what pip must install")
    return parser


if __name__ == "__main__":
    sys.exit(main())
