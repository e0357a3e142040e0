"""What people see of the programs that backends compile: a notice for those who wait, and texts.

The notice appears on stderr once a process has compiled for a second, and only on a terminal. It
replaces the line where the cursor is, which may be a progress bar, and ends with a new line.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Timer
from typing import TYPE_CHECKING, Final

from tensorplug.dispatch.locks import Lock
from tensorplug.engine import settings

if TYPE_CHECKING:
    from collections.abc import Iterator


SECONDS: Final = 1.0  # of building, before the line appears

_sources: Final[ContextVar[list[str] | None]] = ContextVar("sources", default=None)


@contextmanager
def collecting_sources() -> Iterator[list[str]]:
    """Collect the texts of programs that calls of backends use inside the ``with`` block."""
    sources: list[str] = []
    token = _sources.set(sources)
    try:
        yield sources
    finally:
        _sources.reset(token)


class BuildNotice:
    """The notice of one backend, which appears once in a process, at most.

    Children of the process that loaded the backend show none.

    Args:
        name: of the backend.
        what: what it builds, in the plural.

    """

    def __init__(self, name: str, what: str) -> None:
        self._name = name
        self._what = what
        self._lock = Lock()
        self._pid = os.getpid()
        self._shown = False
        self._number = 0  # of programs that were begun
        self._active = 0  # of those that are being built now, in all threads
        self._since = 0.0  # when the first of these began
        self._seconds = 0.0  # of building before that
        self._timer: Timer | None = None
        self._kept = True

    @staticmethod
    def using(source: str) -> None:
        """Say which text a kernel or a group is compiled from, each time one is prepared.

        ``tp.explain(source=True)`` shows it. The backend says so for programs that it has in
        memory or on disk as well.
        """
        sources = _sources.get()
        if sources is not None and source not in sources:
            sources.append(source)

    @contextmanager
    def building(self, *, kept: bool) -> Iterator[None]:
        """Count one program that the ``with`` block builds.

        ``kept``: whether the next process finds it on disk.

        Raises:
            SettingsError: ``TENSORPLUG_BUILD_NOTICE`` is neither 0 nor 1.

        """
        if self._shown:
            yield
            return
        self._begin(kept)
        try:
            yield
        finally:
            self._end()

    def _begin(self, kept: bool) -> None:  # noqa: FBT001  # of ``building``
        shows = settings.shows_builds() and self._pid == os.getpid() and _is_wanted()
        with self._lock:
            self._number += 1
            self._kept = kept
            self._active += 1
            if self._active > 1:
                return
            self._since = time.monotonic()
            if shows and not self._shown:
                timer = Timer(max(0.0, SECONDS - self._seconds), self._show)
                timer.daemon = True
                with suppress(RuntimeError):  # the interpreter ends, and starts no threads
                    timer.start()
                    self._timer = timer

    def _end(self) -> None:
        with self._lock:
            self._active -= 1
            if self._active:
                return
            self._seconds += time.monotonic() - self._since
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _show(self) -> None:
        with self._lock:
            if self._shown or not self._active:
                return
            self._shown = True
            number, kept = self._number, self._kept
        end = "kept" if kept else "not kept"
        text = f"{self._name}: building {self._what} ({number} so far), {end} for next time"
        width = shutil.get_terminal_size().columns
        with suppress(OSError, ValueError, AttributeError):  # the terminal has gone
            sys.stderr.write(f"\r{text.ljust(width - 1)}\n")
            sys.stderr.flush()


def _is_wanted() -> bool:
    """Return whether stderr is a terminal, and this is no worker of ``multiprocessing``."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return False
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False
