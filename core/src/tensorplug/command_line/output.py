"""Prints the answers of commands: text and tables for people, JSON for programs.

All text may come from plugins and drivers, so nothing in it may act on a terminal.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from tensorplug.command_line.layout import GAP, Column, arrange
from tensorplug.engine.foreign_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Column", "OutputError", "Printer", "writing"]

_WIDTH: Final = 80  # characters, where a terminal does not tell
_COLOURS: Final = {
    "ok": "green",
    "available": "green",
    "native": "green",
    "failed": "bold red",
    "not possible": "red",
    "incompatible": "red",
    "conflict": "red",
    "refused": "yellow",
    "warning": "yellow",
}


class OutputError(Exception):
    """The answer could not be written; ``closed``: its reader wants no more of it."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        # Windows reports a closed pipe as EINVAL.
        self.closed = isinstance(error, BrokenPipeError) or (
            os.name == "nt" and error.errno == errno.EINVAL
        )


@contextmanager
def writing(stream: TextIO) -> Iterator[None]:
    """Write to ``stream`` in a ``with`` block, to its end.

    Raises:
        OutputError: the system refuses to write.

    """
    try:
        yield
        stream.flush()
    except OSError as error:
        raise OutputError(error) from error


@dataclass(frozen=True, slots=True)
class Printer:
    """Where an answer goes; ``json``: a program reads it."""

    stream: TextIO
    json: bool = False

    def data(self, value: object) -> None:
        """Print a value as JSON, whose strings escape all that is not ASCII."""
        self._print(json.dumps(value, indent=1))

    def text(self, text: str) -> None:
        """Print text of any origin."""
        self._print(printable(text))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table without its empty columns.

        A terminal gets it in its width, in colours if rich is installed; a pipe or a file gets
        one line a row.
        """
        texts = [[printable(str(cell)) for cell in row] for row in rows]
        used = [at for at in range(len(columns)) if any(row[at] for row in texts)]
        columns, texts = [columns[at] for at in used], [[row[at] for at in used] for row in texts]
        if not self.stream.isatty():
            lines = arrange(columns, texts, None)
            self._print("\n".join(GAP.join(line).rstrip() for line in lines))
            return
        width = self._width()
        lines = arrange(columns, texts, width, self._mark())
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:  # an extra, for colours only
            self._print("\n".join(GAP.join(line).rstrip() for line in lines))
            return
        console = Console(file=self.stream, width=width)
        shown = [
            Text(GAP).join(
                Text(cell, style=_COLOURS.get(cell.strip(), "") if at else "bold") for cell in line
            )
            for at, line in enumerate(lines)
        ]
        for line in shown:
            line.rstrip()
        with writing(self.stream):
            console.print(Text("\n").join(shown), soft_wrap=True)

    def _print(self, text: str) -> None:
        with writing(self.stream):
            print(text, file=self.stream)

    def _width(self) -> int:
        """Return the width that the user set or the terminal has."""
        told = os.environ.get("COLUMNS", "")
        if told.isdecimal() and int(told) > 0:
            return int(told)
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or _WIDTH
        except OSError:
            return _WIDTH

    def _mark(self) -> str:
        """Return an ellipsis that the terminal can show."""
        try:
            "…".encode(self.stream.encoding or "ascii")
        except UnicodeEncodeError:
            return "..."
        return "…"
