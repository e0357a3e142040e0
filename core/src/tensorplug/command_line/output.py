"""Prints the answers of commands: text and tables for people, JSON for programs.

All text may come from plugins and drivers, so nothing in it may act on a terminal.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from tensorplug.system.foreign_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import OverflowMethod

_GAP: Final = 2  # spaces between columns
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


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    ``cut``: its cells lose their ends where a terminal is too narrow. The last column wraps
    unless it is ``cut``.
    """

    title: str
    cut: bool = False


class OutputError(Exception):
    """The answer could not be written; ``closed``: its reader wants no more of it."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        # Windows reports a closed pipe as EINVAL.
        self.closed: bool = isinstance(error, BrokenPipeError) or (
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

        A terminal gets it in its width and in colours if rich is installed; otherwise a row is
        one line, and lines of a cell are joined by semicolons.
        """
        texts = [[printable(str(cell)) for cell in row] for row in rows]
        used = [at for at in range(len(columns)) if any(row[at] for row in texts)]
        columns, texts = [columns[at] for at in used], [[row[at] for at in used] for row in texts]
        if self.stream.isatty():
            with suppress(ImportError):  # rich is an extra
                self._fitted(columns, texts)
                return
        titles = [column.title.upper() for column in columns]
        cells = [titles, *([_one_line(cell) for cell in row] for row in texts)]
        widths = [max(map(len, column)) + _GAP for column in zip(*cells, strict=True)]
        lines = (map(str.ljust, row, widths) for row in cells)
        self._print("\n".join("".join(line).rstrip() for line in lines))

    def _fitted(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Print a table in the width of the terminal.

        Raises:
            ImportError: rich is missing.

        """
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="")
        last = columns[-1]
        for column in columns:
            # Those that rich may narrow; its cells decide whether they wrap or lose their ends.
            table.add_column(column.title.upper(), no_wrap=not column.cut and column is not last)
        overflow: OverflowMethod = "ellipsis" if self._shows("…") else "crop"
        for row in rows:
            cells = [Text(cell, _COLOURS.get(cell, "")) for cell in row]
            cells[0].style = "bold"
            for cell, column in zip(cells, columns, strict=True):
                if column.cut:
                    cell.no_wrap, cell.overflow = True, overflow
            table.add_row(*cells)
        with writing(self.stream):
            Console(file=self.stream, width=self._width()).print(table)

    def _print(self, text: str) -> None:
        with writing(self.stream):
            print(text, file=self.stream)

    def _width(self) -> int:
        """Return the width that the user set or the terminal has."""
        columns = os.environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns) > 0:
            return int(columns)
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or _WIDTH
        except OSError:
            return _WIDTH

    def _shows(self, character: str) -> bool:
        """Return whether the terminal can show a character."""
        try:
            character.encode(self.stream.encoding or "ascii")
        except UnicodeEncodeError:
            return False
        return True


def _one_line(cell: str) -> str:
    lines = (line.strip() for line in cell.expandtabs(1).splitlines())
    return "; ".join(filter(None, lines))
