"""How tensorplug's own processes start: nothing in the user's folder takes a module's place.

A program's folder, or the current one, comes first on Python's path. A ``numpy.py`` or
``queue.py`` there would be imported instead of what the child needs, although this process may
have imported the right one long ago. So children start with ``-P`` (no such folder), and get this
process's path with that folder at its end: plugins in it are still found.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final, NamedTuple

# By these, users and systems end processes: for lack of memory, of processor time, of a terminal.
_FROM_OUTSIDE: Final = {"SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGXCPU", "SIGXFSZ"}
_RUN = "import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"


def module_arguments(module: str, *arguments: str) -> list[str]:
    """Return the arguments of an interpreter that runs ``module`` as ``__main__``.

    Examples:
        >>> import subprocess, sys
        >>> command = [sys.executable, *module_arguments("platform", "--terse")]
        >>> subprocess.run(command, check=True, capture_output=True).returncode
        0

    """
    return code_arguments(_RUN.format(module=module), *arguments)


def code_arguments(code: str, *arguments: str) -> list[str]:
    """Return the arguments of an interpreter that runs ``code`` with this process's path."""
    return ["-P", "-c", f"import sys; sys.path[:] = {search_path()!r}\n{code}", *arguments]


class End(NamedTuple):
    """How a process ended, in words, and whether something else than its own work ended it."""

    text: str
    from_outside: bool


def describe_end(code: int) -> End:
    """Return how a process ended that had this ``returncode``.

    Examples:
        >>> describe_end(-11).text
        'the process died of SIGSEGV'

    """
    if code >= 0:
        return End(f"the process ended with exit status {code}", from_outside=False)
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-code, f"signal {-code}")
    return End(f"the process died of {name}", name in _FROM_OUTSIDE)


def search_path() -> list[str]:
    """Return ``sys.path`` with the program's own folder at its end.

    A folder that ``PYTHONPATH`` names, or that has tensorplug itself, keeps its place. What this
    process has added to ``PYTHONPATH``, for its children, comes first.
    """
    entries: list[object] = [*sys.path]
    path = [entry for entry in entries if isinstance(entry, str)]  # imports ignore others
    last = [entry for entry in path if _is_the_programs(entry)]
    first = [entry for entry in path if entry not in last]
    added = [name for name in _named() if name not in path]
    return added + first + [str(Path(entry).absolute()) for entry in last]


def _is_the_programs(entry: str) -> bool:
    """Return whether Python has put this entry on the path because of the running program."""
    if not entry:  # an interactive session
        return True
    folder = Path(entry).absolute()
    kept = [Path(__file__).parents[2], *map(Path, _named())]
    return folder in _program_folders() and folder not in kept


def _named() -> list[str]:
    """Return the folders that ``PYTHONPATH`` names."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(name).absolute()) for name in named if name]


def _program_folders() -> list[Path]:
    main = sys.modules.get("__main__")
    folders = [Path.cwd()]  # of ``python -m``
    script = getattr(main, "__file__", None)
    if script:
        folders.append(Path(script).absolute().parent)
    return folders
