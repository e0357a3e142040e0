"""Tables as plain text, for terminals and files if rich is not installed."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_GAP: Final = "  "
_LEAST: Final = 10  # characters: the minimum width of a narrowed column


@dataclass(frozen=True, slots=True)
class Column:
    """One column, whose cells are aligned on the left or on the ``right``.

    ``whole``: it is narrowed last. ``most``: the maximum width in characters.
    """

    title: str
    right: bool = False
    whole: bool = False
    most: int | None = None


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int) -> str:
    """Return a table of at most ``width`` characters, with a line of titles.

    If necessary, long cells wrap, those of ``whole`` columns last. A cell may have several lines;
    wrapped lines keep their indentation. If the terminal is too narrow, lines are longer.
    """
    cells = [[column.title for column in columns], *([*row] for row in rows)]
    widths = _widths(columns, cells, width)
    title, *others = (_lines(row, columns, widths) for row in cells)
    rule = _GAP.join("-" * width for width in widths)
    return "\n".join([*title, rule, *(line for row in others for line in row)])


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the width of each column; the widest is narrowed repeatedly until all fit."""
    natural = [max(map(_natural_width, column)) for column in zip(*cells, strict=True)]
    widths = [
        min(length, column.most or length) for length, column in zip(natural, columns, strict=True)
    ]
    room = width - len(_GAP) * (len(columns) - 1)
    everything = range(len(columns))
    for candidates in ([at for at in everything if not columns[at].whole], everything):
        while candidates and sum(widths) > room:
            widest = max(candidates, key=widths.__getitem__)
            if widths[widest] <= _LEAST:
                break
            widths[widest] -= 1
    return widths


def _natural_width(cell: str) -> int:
    return max(map(len, cell.splitlines()), default=0)


def _lines(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    """Return the lines of one row."""
    wrapped = [_wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for parts in zip_longest(*wrapped, fillvalue=""):
        aligned = [
            part.rjust(width) if column.right else part.ljust(width)
            for part, column, width in zip(parts, columns, widths, strict=True)
        ]
        lines.append(_GAP.join(aligned).rstrip())
    return lines


def _wrap(cell: str, width: int) -> list[str]:
    """Return the lines of a cell, at most ``width`` characters long."""
    lines: list[str] = []
    for line in cell.splitlines() or [""]:
        text = line.strip()
        indent = " " * min(len(line) - len(line.lstrip()), width // 2)
        lines += textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        ) or [""]
    return lines
