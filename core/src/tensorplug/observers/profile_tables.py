"""Profiles as tables in the terminal: with rich if it is installed, else as plain text."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TextIO

from tensorplug.contract.arguments import choice
from tensorplug.observers import text_tables
from tensorplug.observers.profile_views import bytes_text, groups, heading, types_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    from tensorplug.observers.profile_records import ProfileFigures
    from tensorplug.observers.profile_views import Group


# The kernel's own share of the time, and that of its inner calls.
_BAR: Final = ("█", "░")
_ASCII_BAR: Final = ("#", "-")

_WIDE: Final = 100  # characters from which a table has more columns


def show(
    profile: ProfileFigures,
    by: Literal["kernel", "call"],
    limit: int | None,
    file: TextIO | None,
    width: int | None,
) -> None:
    """Print a table; see ``Profile.show``."""
    choice(by, ("kernel", "call"), "show: by")
    make = _by_kernel if by == "kernel" else _by_call
    try:
        from rich.console import Console  # an extra: the core itself prints nothing
    except ImportError:
        columns = width or shutil.get_terminal_size().columns
        figures = make(profile, limit, wide=columns >= _WIDE)
        print(heading(profile), file=file)
        if figures.rows:
            print(_plain(figures, columns), file=file)
        for note in _notes(profile, figures, _ASCII_BAR):
            print(note, file=file)
        return
    console = Console(file=file, width=width, highlight=False)
    figures = make(profile, limit, wide=console.width >= _WIDE)
    console.print(heading(profile), style="bold")
    if figures.rows:
        console.print(_table(figures))
    for note in _notes(profile, figures, _bar(console.options)):
        console.print(note, style="dim")


@dataclass(frozen=True, slots=True)
class _Figures:
    """A table before layout."""

    by: Literal["kernel", "call"]
    wide: bool
    columns: tuple[tuple[str, Literal["left", "right"]], ...]
    rows: list[tuple[str | _Kernel | _Share, ...]]


def _notes(profile: ProfileFigures, figures: _Figures, bar: tuple[str, str]) -> Iterator[str]:
    """Yield the lines below the table."""
    by_kernel = figures.by == "kernel"
    if by_kernel and any(kernel.depth for kernel in profile.kernels):
        yield f"{bar[0]} in the kernel itself, {bar[1]} in those it calls"
    rows = len(groups(profile.kernels)) if by_kernel else len(profile.kernels)
    if rows > len(figures.rows):
        yield f"and {rows - len(figures.rows)} more; limit=None shows all"


def _plain(figures: _Figures, width: int) -> str:
    columns = [
        text_tables.Column(
            title,
            right=justify == "right",
            whole=title not in _LONG,
            most=_most(title, figures),
        )
        for title, justify in figures.columns
    ]
    return text_tables.table(columns, ([str(cell) for cell in row] for row in figures.rows), width)


_LONG: Final = ("Kernel", "On")  # the columns whose cells may wrap


def _most(title: str, figures: _Figures) -> int | None:
    """Return the maximum width of a column."""
    return 10 if title == "On" and not figures.wide else None


def _table(figures: _Figures) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold"
    )
    for title, justify in figures.columns:
        takes_the_rest = title == "Kernel"
        table.add_column(
            title,
            justify=justify,
            no_wrap=title not in _LONG,
            overflow="fold",
            ratio=1 if takes_the_rest else None,
            max_width=_most(title, figures),
        )
    for row in figures.rows:
        table.add_row(*row)
    return table


def _by_kernel(profile: ProfileFigures, limit: int | None, *, wide: bool) -> _Figures:
    return _Figures(
        "kernel",
        wide,
        (
            ("Kernel", "left"),
            ("Calls", "right"),
            ("Total ms", "right"),
            ("Share", "left"),
            ("New", "right"),
            ("On", "left"),
        ),
        [
            (
                _Kernel(group.name, types_text(group.inputs)),
                str(group.calls),
                f"{group.seconds * 1e3:.3f}",
                _Share(group, profile.kernel_seconds, 24 if wide else 8),
                bytes_text(group.new_bytes),
                f"{group.device} {group.how}",
            )
            for group in groups(profile.kernels)[:limit]
        ],
    )


def _by_call(profile: ProfileFigures, limit: int | None, *, wide: bool) -> _Figures:
    live: tuple[tuple[str, Literal["left", "right"]], ...] = (("Live", "right"),) if wide else ()
    return _Figures(
        "call",
        wide,
        (
            ("At ms", "right"),
            ("Kernel", "left"),
            ("ms", "right"),
            ("New", "right"),
            *live,
            ("On", "left"),
            ("Line", "left"),
        ),
        [
            (
                f"{kernel.start * 1e3:.3f}",
                _Kernel(kernel.name, types_text(kernel.inputs), kernel.depth),
                f"{kernel.seconds * 1e3:.3f}",
                bytes_text(kernel.new_bytes),
                *([bytes_text(kernel.live_bytes)] if wide else []),
                f"{kernel.device} {kernel.how}",
                "" if kernel.site is None else kernel.site.short,
            )
            for kernel in sorted(profile.kernels, key=lambda record: record.start)[:limit]
        ],
    )


def _bar(options: ConsoleOptions) -> tuple[str, str]:
    return _ASCII_BAR if options.ascii_only else _BAR


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel and the types of its inputs, indented by the depth of the call."""

    name: str
    types: str
    depth: int = 0

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.name} {self.types}"

    def __rich__(self) -> RenderableType:
        from rich.padding import Padding
        from rich.text import Text

        text = Text.assemble((self.name, "bold"), " ", (self.types, "dim"))
        return Padding(text, (0, 0, 0, 2 * self.depth))


class _Share:
    """A percentage of the time in kernels, and a bar.

    The solid part of the bar is the kernel itself, the light part its inner calls.
    """

    def __init__(self, group: Group, whole: float, room: int) -> None:
        self._own = group.self_seconds / whole if whole else 0.0
        self._part = group.seconds / whole if whole else 0.0
        self._room = room

    def __str__(self) -> str:
        return self._percentage + self._drawn(_ASCII_BAR)

    @property
    def _percentage(self) -> str:
        return f"{100 * self._part:5.1f}% "

    def _drawn(self, bar: tuple[str, str]) -> str:
        cells, own = round(self._part * self._room), round(self._own * self._room)
        return bar[0] * own + bar[1] * (cells - own)

    def __rich_measure__(self, _console: Console, _options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        return Measurement(self._room + 7, self._room + 7)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        yield Text.assemble(self._percentage, (self._drawn(_bar(options)), "cyan"))
