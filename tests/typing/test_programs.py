"""Type checkers accept a correct program, find each mistake in another, and know all public types.

``good.py`` asserts the types that a checker must find. In ``bad.py`` a comment marks each line
with a mistake: if a signature becomes ``Any`` again, its mistake is not found any more.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.typing import good

if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = Path(__file__).parent
_SCRIPTS = Path(sys.executable).parent
_MARK = "  # error"
# Symbols whose types a checker knows without guessing. The rest are the templates' tests, and
# attributes of classes that users do not see.
_COMPLETE = 0.98


def run(tool: str, *arguments: str, cwd: Path) -> str:
    """Run a checker of this environment as a user would, outside of the repository."""
    path = os.pathsep.join((str(_SCRIPTS), os.environ["PATH"]))  # where pyright looks for Python
    done = subprocess.run(
        [_SCRIPTS / tool, *arguments],
        cwd=cwd,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def errors_of_mypy(folder: Path) -> list[tuple[str, int, str]]:
    text = run("mypy", "--strict", "--cache-dir", "cache", "good.py", "bad.py", cwd=folder)
    found = re.findall(r"^(\w+\.py):(\d+): error: (.*)$", text, re.MULTILINE)
    return [(name, int(line), message) for name, line, message in found]


def errors_of_pyright(folder: Path) -> list[tuple[str, int, str]]:
    report = json.loads(run("basedpyright", "--outputjson", "good.py", "bad.py", cwd=folder))
    return [
        (Path(found["file"]).name, found["range"]["start"]["line"] + 1, found["message"])
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    ]


@pytest.mark.parametrize("errors_of", [errors_of_mypy, errors_of_pyright])
def test_checkers_find_the_mistakes_and_nothing_else(errors_of: Any, tmp_path: Path) -> None:
    for name in ("good.py", "bad.py"):
        shutil.copy(_HERE / name, tmp_path)
    errors = errors_of(tmp_path)
    assert [error for error in errors if error[0] != "bad.py"] == []
    lines = (_HERE / "bad.py").read_text(encoding="utf-8").splitlines()
    wanted = {at for at, line in enumerate(lines, 1) if line.endswith(_MARK)}
    found: Mapping[int, str] = {line: message for _, line, message in errors}
    assert len(wanted) > 70
    assert [lines[at - 1] for at in sorted(wanted - set(found))] == [], "mistakes not found"
    assert {at: found[at] for at in sorted(set(found) - wanted)} == {}


def test_what_the_types_allow_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good.main()


def test_public_symbols_have_types(tmp_path: Path) -> None:
    report = run(
        "basedpyright",
        "--verifytypes",
        "tensorplug",
        "--ignoreexternal",
        "--outputjson",
        cwd=tmp_path,
    )
    completeness = json.loads(report)["typeCompleteness"]
    exported = [
        symbol
        for symbol in completeness["symbols"]
        if symbol["isExported"] and ".templates." not in symbol["name"]  # which nobody imports
    ]
    missing = [
        f"{symbol['name']}: {' '.join(problem['message'] for problem in symbol['diagnostics'])}"
        for symbol in exported
        if not symbol["isTypeKnown"]
    ]
    assert len(exported) > 5000
    assert len(missing) < (1 - _COMPLETE) * len(exported), "\n".join(missing)
