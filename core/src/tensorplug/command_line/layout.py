"""Tables of text: one line a row, as wide as need be, or fitted to a terminal."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


GAP: Final = "  "
_LEAST: Final = 8  # characters of a column that is cut
_HANGING: Final = 30  # characters of a column that wraps


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    ``cut``: its cells lose their ends where a terminal is too narrow. Cells of the last column
    may have several lines, and wrap unless that column is ``cut``.
    """

    title: str
    cut: bool = False


def arrange(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, mark: str = "..."
) -> list[list[str]]:
    """Return the lines of a table, each as a list of padded cells; the first are the titles.

    Args:
        columns: of the table.
        rows: their cells, as many as there are columns.
        width: of the terminal, which no line exceeds unless it is too narrow for the columns
            that cannot be cut. None: a row is one line, nothing is cut, and lines of a cell are
            joined by semicolons.
        mark: the end of a cell that was cut.

    """
    titles = [column.title.upper() for column in columns]
    if width is None:
        rows = [["; ".join(_lines_of(cell)) for cell in row] for row in rows]
    cells = [titles, *rows]
    widths = [max(map(_width_of, column)) for column in zip(*cells, strict=True)]
    if width is None:
        return [_pad(row, widths) for row in cells]
    room = width - len(GAP) * (len(columns) - 1)
    _narrow(columns, widths, room)
    if not columns[-1].cut:
        widths[-1] = min(widths[-1], max(room - sum(widths[:-1]), _HANGING))
    return [line for row in cells for line in _fit(row, columns, widths, mark)]


def _narrow(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Narrow the widest of the columns that may be cut, until all columns fit."""
    cut = [at for at, column in enumerate(columns) if column.cut]
    wraps = 0 if columns[-1].cut else max(widths[-1] - _HANGING, 0)
    while cut and sum(widths) - wraps > room:
        widest = max(cut, key=widths.__getitem__)
        if widths[widest] <= max(_LEAST, len(columns[widest].title)):
            cut.remove(widest)
        else:
            widths[widest] -= 1


def _fit(
    row: Sequence[str], columns: Sequence[Column], widths: Sequence[int], mark: str
) -> list[list[str]]:
    """Return the lines of one row."""
    *first, last = (
        [_cut(cell, width, mark)] if column.cut else [cell]
        for cell, column, width in zip(row, columns, widths, strict=True)
    )
    if not columns[-1].cut:
        last = [
            part
            for line in _lines_of(row[-1])
            for part in textwrap.wrap(line, widths[-1], break_on_hyphens=False)
        ] or [""]
    return [_pad(cells, widths) for cells in zip_longest(*first, last, fillvalue="")]


def _cut(cell: str, width: int, mark: str) -> str:
    return cell if len(cell) <= width else cell[: width - len(mark)] + mark


def _pad(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.ljust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)] + [
        row[-1]
    ]


def _lines_of(cell: str) -> list[str]:
    return [line.strip() for line in cell.expandtabs(1).splitlines() if line.strip()]


def _width_of(cell: str) -> int:
    return max(map(len, cell.splitlines()), default=0)
