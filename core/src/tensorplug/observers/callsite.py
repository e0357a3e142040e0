"""Finding the line of the user's program from which a kernel call comes.

The call stack between that line and the kernel contains ops and the engine, and sometimes ops,
gradient rules and decompositions of plugins. Their stack frames are recognized by module names,
so that user code in a notebook, a prompt or ``exec`` is found, too.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.context import current_context

if TYPE_CHECKING:
    from types import FrameType


_CORE: Final = __name__.partition(".")[0]
_ALONE: Final = (_CORE,)
_ENGINE: Final = f"{_CORE}.engine.path"


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line of Python, as text and numbers, which keep no stack frame alive.

    ``file`` is the interpreter's name, which may be ``<string>`` or a notebook's cell.
    """

    file: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """The line's text without indentation; empty if it cannot be found."""
        return linecache.getline(self.file, self.line).strip()

    def describe(self) -> str:
        """Return file, line and function, and the line's text below."""
        where = f"{self} in {self.function}"
        return f"{where}\n    {self.source}" if self.source else where

    @property
    def short(self) -> str:
        """The file name without its folder, and the line: ``train.py:12``."""
        return f"{Path(self.file).name}:{self.line}"

    def __str__(self) -> str:
        return f"{_shortened(self.file)}:{self.line}"


def find(plugins: tuple[str, ...] | None = None) -> CallSite | None:
    """Return the innermost line outside this package and those of installed plugins.

    Inside an observer it is the line that called the kernel. If only plugins are outside this
    package, as when a plugin runs its own example, it is their innermost line. None if a thread
    runs only code of this package. ``plugins``: ``plugin_packages()``, where it is known.
    """
    of_plugin: FrameType | None = None
    frame = _start_frame()
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if not _within(module, _ALONE):
            plugins = plugin_packages() if plugins is None else plugins
            if not _within(module, plugins):
                return _site(frame)
            of_plugin = of_plugin or frame
        frame = frame.f_back
    return of_plugin and _site(of_plugin)


def _start_frame() -> FrameType | None:
    """Return the engine's innermost stack frame, which excludes observers; else the caller's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") != _ENGINE:
        frame = frame.f_back
    return frame or sys._getframe(2)


@lru_cache(1024)
def _within(module: str, packages: tuple[str, ...]) -> bool:
    """Return whether a module is in one of ``packages``; False if it has no name."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def plugin_packages() -> tuple[str, ...]:
    """Return the packages of the plugins that the current engine uses."""
    engine: Any = current_context().engine
    source = None if engine is None else engine.devices.source
    packages = getattr(source, "packages", None)  # absent in sources of tests
    return () if packages is None else tuple(packages())


def _site(frame: FrameType) -> CallSite:
    code = frame.f_code
    # Lets `source` read the text from a loader, as for a zip file; reads nothing yet.
    linecache.lazycache(code.co_filename, frame.f_globals)
    return CallSite(code.co_filename, frame.f_lineno, code.co_qualname)


def _shortened(file: str) -> str:
    """Return a path relative to the working directory, if it leads there."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):  # outside of it, not a path, or the directory is gone
        return file
