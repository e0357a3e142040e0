"""The case that a worker runs, noted where it outlives the process.

Each note takes the place of the one before, so that it costs one call of the system.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, Final, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


_MOST: Final = 400  # bytes
_SUFFIX: Final = ".case"


def unnoted(_case: str) -> None:
    """Note nothing: nobody would read it."""


class Notes:
    """Writes notes beside a worker's file of events."""

    def __init__(self, events: Path) -> None:
        self._file = os.open(_beside(events), os.O_WRONLY | os.O_CREAT, 0o600)

    def write(self, text: str) -> None:
        """Note ``text`` in place of what was noted before; its end is left out if it is long."""
        line = text.encode()[:_MOST] + b"\n"
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        os.close(self._file)


def note_beside(events: Path) -> BinaryIO:
    """Create the file of notes for ``noted``, before a backend can put another one there."""
    return _beside(events).open("x+b", buffering=0)


def noted(file: BinaryIO) -> str:
    """Return the last note of a worker; empty if there is none."""
    file.seek(0)
    return file.read(_MOST + 1).partition(b"\n")[0].decode(errors="ignore")


def _beside(events: Path) -> Path:
    return events.with_name(events.name + _SUFFIX)
