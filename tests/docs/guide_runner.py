r"""Runs a guide of ``docs/guides`` as its reader would: block after block, in an empty folder.

The first line of a fenced block says what happens to it:

=========================  =======================================================================
``python``                 runs, in one session from the first such block of a guide to its last.
                           Its output must be in a ``text`` block right below it; without one it
                           prints nothing. An error that ends it is printed as
                           ``module.Class: message``, and the session goes on.
``console``                lines ``$ command`` run in bash, one after the other, until the block
                           ends; a command ends at the line's end, or goes on below after ``\``.
                           Each must succeed, or its output must end with a line
                           ``[exit code 1]``. Where lines stand below a command, they are what it
                           prints, errors included; where none do, it may print anything. ``cd``
                           holds for what follows, in Python too; ``export`` does not.
``LANGUAGE file=PATH``     is written to that file, below the folder where the guide then is.
``diff file=PATH``         changes that file: the lines with a space or ``-`` in front must stand
                           there once, one below the other, and those with a space or ``+`` take
                           their place. A line ``@@`` separates one place from the next.
                           In both cases the text above the block names the file.
anything else              (``sh``, ``toml``, ...) is only read.
=========================  =======================================================================

``...`` in an expected output stands for any text, over several lines too; white space counts only
as a separation. Use it for text that differs from run to run, such as times.

The folder is empty and lies outside the repository. Commands find an environment of their own,
into which ``pip install ./it`` installs; whatever this repository's environment has is there too.
There is no network: what a package requires must be installed already, and ``pip`` does not look.
No ``TENSORPLUG_`` variable is set; commands that need one say ``TENSORPLUG_BACKEND=cpu python``.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from sysconfig import get_path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
TIME_LIMIT = 600  # seconds, for one command

BLOCK = re.compile(
    r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?\n(?P<text>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(r"^\$ ((?s:.*?)(?<!\\))\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
EXIT = re.compile(r"\[exit code (\d+)\]\n\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line on which it begins."""

    kind: str
    file: str
    text: str
    printed: str
    line: int
    above: str  # the text between the block before and this one


def blocks(guide: str) -> Iterator[Block]:
    """Return the blocks of a guide that are run or written, in order."""
    end = 0
    for match in BLOCK.finditer(guide):
        kind, file = match["kind"], match["file"] or ""
        if file or kind in ("python", "console"):
            line = guide[: match.start()].count("\n") + 1
            above = guide[end : match.start()]
            yield Block(kind, file, match["text"], match["printed"] or "", line, above)
        end = match.end()


def matches(expected: str, printed: str) -> bool:
    """Return whether an output is what the guide shows."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, printed, flags)


def changed(text: str, diff: str) -> str:
    """Return a file's text after the changes of a ``diff`` block."""
    lines = text.splitlines()
    for part in re.split(r"^@@.*\n", diff, flags=re.MULTILINE):
        marked = [line or " " for line in part.splitlines()]
        wrong = [line for line in marked if line[0] not in " +-"]
        assert not wrong, f"neither kept, added nor removed: {wrong}"
        old = [line[1:] for line in marked if line[0] != "+"]
        new = [line[1:] for line in marked if line[0] != "-"]
        places = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
        shown = "\n".join(old)
        assert len(places) == 1, f"to be found once, found {len(places)} times:\n{shown}"
        lines[places[0] : places[0] + len(old)] = new
    return "".join(f"{line}\n" for line in lines)


class Reader:
    """A reader who follows a guide, with a folder, an environment and a Python session."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self._environment = environment
        self._where = folder / "where"
        self._session: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._session is not None:
            self._session.communicate()

    def follow(self, block: Block) -> None:
        """Do what a block says; raise ``AssertionError`` where the guide is wrong."""
        path = self.cwd / block.file
        shown = not block.file or path.name in block.above
        assert shown, f"the text above does not name {path.name}, and PATH is not shown to readers"
        if block.kind == "diff":
            path.write_text(changed(path.read_text("utf-8"), block.text), "utf-8")
        elif block.file:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
        elif block.kind == "console":
            for command, expected in COMMAND.findall(block.text):
                self._command(command, expected)
        else:
            printed = self._python(block.text)
            assert matches(block.printed, printed), f"{block.text}\nprinted\n\n{printed}"

    def _command(self, command: str, expected: str) -> None:
        ended = subprocess.run(
            ["bash", "-c", f"trap 'pwd > {self._where}' EXIT\n{command}"],
            cwd=self.cwd,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        self.cwd = Path(self._where.read_text("utf-8").strip())
        said = EXIT.search(expected)
        code = int(said[1]) if said else 0
        assert ended.returncode == code, (
            f"{command}\nended with {ended.returncode}\n{ended.stdout}"
        )
        expected = EXIT.sub("", expected)
        fits = not expected.strip() or matches(expected, ended.stdout)
        assert fits, f"{command}\nprinted\n\n{ended.stdout}"

    def _python(self, code: str) -> str:
        if self._session is None:
            self._session = subprocess.Popen(
                ["python", str(Path(__file__).with_name("python_session.py"))],
                cwd=self.cwd,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        streams: Any = self._session
        streams.stdin.write(json.dumps({"cwd": str(self.cwd), "code": code}) + "\n")
        streams.stdin.flush()
        answer = streams.stdout.readline()
        assert answer, f"the session died of\n{code}"
        printed: str = json.loads(answer)
        return printed


def make_environment(folder: Path) -> dict[str, str]:
    """Make a virtual environment on top of this one; return the variables that lead to it."""
    venv.create(folder, symlinks=True)
    python, scripts = folder / "bin" / "python", folder / "bin"
    site = next(folder.glob("lib/*/site-packages"))
    below = f"import site; site.addsitedir({get_path('purelib')!r})\n"
    (site / "below.pth").write_text(below, "utf-8")
    for script in entry_points(group="console_scripts"):
        path = scripts / script.name
        if not path.exists():
            path.write_text(
                f"#!{python}\nimport sys\nfrom {script.module} import {script.attr}\n"
                f"sys.exit({script.attr}())\n",
                "utf-8",
            )
            path.chmod(0o755)
    kept = {
        name: item
        for name, item in os.environ.items()
        if not name.startswith(("TENSORPLUG_", "PYTEST_", "PYTHON", "PIP_"))
    }
    return {
        **kept,
        "PATH": os.pathsep.join([str(scripts), str(Path(sys.executable).parent), kept["PATH"]]),
        "VIRTUAL_ENV": str(folder),
        "COLUMNS": "100",
        "PYTHONDONTWRITEBYTECODE": "1",  # a file may change twice in one second
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # for an option that says "no", 0 means it is present
        "PIP_QUIET": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
