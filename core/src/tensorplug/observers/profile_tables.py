"""Profiles as tables in the terminal, by rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from tensorplug.errors import ArgumentError, PackageNotInstalledError
from tensorplug.observers.profile_views import bytes_text, groups, heading, types_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    from tensorplug.observers.profile_views import Group
    from tensorplug.observers.profiler import Profile

__all__ = ["show"]

# The kernel's own share of the time, and that of the calls inside it; in ASCII where need be.
_BAR: Final = ("█", "░")
_ASCII_BAR: Final = ("#", "-")

_WIDE: Final = 100  # characters, from which there is room for more


def show(
    profile: Profile,
    by: Literal["kernel", "call"],
    limit: int | None,
    file: TextIO | None,
    width: int | None,
) -> None:
    """Print a table; see ``Profile.show``."""
    if by not in ("kernel", "call"):
        raise ArgumentError(f"show: by must be 'kernel' or 'call', got {by!r}")
    try:
        from rich.console import Console  # an extra: the core itself prints nothing
    except ImportError as error:
        raise PackageNotInstalledError(
            "Profile.show needs the package rich. Try: pip install 'tensorplug[cli]'; "
            "print(profile) gives a summary without it"
        ) from error
    console = Console(file=file, width=width, highlight=False)
    make = _by_kernel if by == "kernel" else _by_call
    table = make(profile, limit, wide=console.width >= _WIDE)
    console.print(heading(profile), style="bold")
    if table.row_count:
        console.print(table)
    rows = len(groups(profile.kernels)) if by == "kernel" else len(profile.kernels)
    if by == "kernel" and any(each.depth for each in profile.kernels):
        solid, light = _bar(console.options)
        console.print(f"{solid} in the kernel itself, {light} in those it calls", style="dim")
    if rows > table.row_count:
        console.print(f"and {rows - table.row_count} more; limit=None shows all", style="dim")


def _table(*columns: tuple[str, Literal["left", "right"]], wide: bool) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold"
    )
    for title, justify in columns:
        takes_the_rest = title == "Kernel"
        table.add_column(
            title,
            justify=justify,
            no_wrap=title not in ("Kernel", "On"),
            overflow="fold",
            ratio=1 if takes_the_rest else None,
            max_width=10 if title == "On" and not wide else None,
        )
    return table


def _kernel(name: str, types: str, depth: int = 0) -> Any:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text.assemble((name, "bold"), " ", (types, "dim")), (0, 0, 0, 2 * depth))


def _by_kernel(profile: Profile, limit: int | None, *, wide: bool) -> Table:
    table = _table(
        ("Kernel", "left"),
        ("Calls", "right"),
        ("Total ms", "right"),
        ("Share", "left"),
        ("New", "right"),
        ("On", "left"),
        wide=wide,
    )
    for group in groups(profile.kernels)[:limit]:
        table.add_row(
            _kernel(group.name, types_text(group.inputs)),
            str(group.calls),
            f"{group.seconds * 1e3:.3f}",
            _Share(group, profile.kernel_seconds, 24 if wide else 8),
            bytes_text(group.new_bytes),
            f"{group.device} {group.how}",
        )
    return table


def _by_call(profile: Profile, limit: int | None, *, wide: bool) -> Table:
    live: tuple[tuple[str, Literal["left", "right"]], ...] = (("Live", "right"),) if wide else ()
    table = _table(
        ("At ms", "right"),
        ("Kernel", "left"),
        ("ms", "right"),
        ("New", "right"),
        *live,
        ("On", "left"),
        ("Line", "left"),
        wide=wide,
    )
    for each in sorted(profile.kernels, key=lambda record: record.start)[:limit]:
        table.add_row(
            f"{each.start * 1e3:.3f}",
            _kernel(each.name, types_text(each.inputs), each.depth),
            f"{each.seconds * 1e3:.3f}",
            bytes_text(each.new_bytes),
            *([bytes_text(each.live_bytes)] if wide else []),
            f"{each.device} {each.how}",
            "" if each.site is None else each.site.short,
        )
    return table


def _bar(options: ConsoleOptions) -> tuple[str, str]:
    return _ASCII_BAR if options.ascii_only else _BAR


class _Share:
    """A percentage of the time in kernels, and a bar of it.

    The solid part of the bar is what the kernel did itself, the light part what it called.
    """

    def __init__(self, group: Group, whole: float, room: int) -> None:
        self._own = group.self_seconds / whole if whole else 0.0
        self._part = group.seconds / whole if whole else 0.0
        self._room = room

    def __rich_measure__(self, _console: Console, _options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        return Measurement(self._room + 7, self._room + 7)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        solid, light = _bar(options)
        cells, own = round(self._part * self._room), round(self._own * self._room)
        bar = solid * own + light * (cells - own)
        yield Text.assemble(f"{100 * self._part:5.1f}% ", (bar, "cyan"))
