"""Which line of the user's program a kernel call comes from.

Between that line and the kernel stand ops, operators and the engine, and sometimes the ops,
gradient rules and decompositions of plugins. What is left out is told by the name of the module
in which a function was written, so that code from a notebook, a prompt or ``exec`` is found too.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.context import current_context

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

__all__ = ["CallSite", "find"]

_CORE: Final = __name__.partition(".")[0]
_ENGINE: Final = f"{_CORE}.engine.engine"


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line of Python. It holds text and numbers only, so it keeps nothing alive.

    ``file`` is as the interpreter knows it, ``<string>`` or a notebook's cell among them.
    """

    file: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """The line's text without indentation; empty where it cannot be found."""
        return linecache.getline(self.file, self.line).strip()

    def describe(self) -> str:
        """Return file, line and function, and the line's text below."""
        where = f"{self} in {self.function}"
        return f"{where}\n    {self.source}" if self.source else where

    @property
    def short(self) -> str:
        """The name of the file, without its folder, and the line: ``train.py:12``."""
        return f"{Path(self.file).name}:{self.line}"

    def __str__(self) -> str:
        return f"{_shortened(self.file)}:{self.line}"


def find() -> CallSite | None:
    """Return the innermost line outside this package and those of installed plugins.

    Inside an observer, wherever that was written, it is the line that called the kernel. Where
    only plugins are outside this package, as when a plugin runs its own example, it is the
    innermost of theirs. None where a thread runs our own code alone.
    """
    plugins = _plugins()
    of_plugin: FrameType | None = None
    frame = _asked_from()
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if not _within(module, (_CORE,)):
            if not _within(module, plugins):
                return _site(frame)
            of_plugin = of_plugin or frame
        frame = frame.f_back
    return of_plugin and _site(of_plugin)


def _asked_from() -> FrameType | None:
    """Return the engine's innermost frame, inside of which are observers; ours without any."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") != _ENGINE:
        frame = frame.f_back
    return frame or sys._getframe(2)


def _within(module: object, packages: Sequence[str]) -> bool:
    """Return whether a module, if it has a name at all, is in one of ``packages``."""
    return isinstance(module, str) and any(
        module == package or module.startswith(f"{package}.") for package in packages
    )


def _plugins() -> Sequence[str]:
    """Return the packages of the plugins from which the engine in use has taken something."""
    engine: Any = current_context().engine
    source = None if engine is None else engine.devices.source
    packages = getattr(source, "packages", None)  # a source of a test's own has none
    return () if packages is None else packages()


def _site(frame: FrameType) -> CallSite:
    code = frame.f_code
    # So that the text is found where a loader has it, as in a zip file; nothing is read yet.
    linecache.lazycache(code.co_filename, frame.f_globals)
    return CallSite(code.co_filename, frame.f_lineno, code.co_qualname)


def _shortened(file: str) -> str:
    """Return a path relative to the working directory, if it leads there."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, no path at all, or the directory is gone
        return file
