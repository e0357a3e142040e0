"""The command ``measure``: times a backend, and adds the times to its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tensorplug_conformance.checks import Target
from tensorplug_conformance.performance.measurement import measure
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.quoting import for_terminal
from tensorplug_conformance.reporting.rendering import render
from tensorplug_conformance.reporting.report import ReportError
from tensorplug_conformance.reporting.roofline import gains, hurried, without_estimate
from tensorplug_conformance.running.opening import check_opens
from tensorplug_conformance.running.supervisor import Limits

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rich.console import Console


_SHOWN: Final = 15  # kernels of the list
_ONE: Final = ("distribution", "version", "device")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--backend", required=True, metavar="NAME")
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="of `run`: the times are added to its report"
    )
    parser.add_argument(
        "--kernels",
        type=lambda text: tuple(filter(None, text.split(","))),
        default=(),
        metavar="GLOBS",
        help="only these, separated by commas",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Measure, show what would gain most, and add it to the report; return 0."""
    target = Target(options.backend)
    before = None if options.report is None else _read(options.report)
    check_opens(target, Limits())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_interactive) as bar:
        task = bar.add_task("kernels")

        def progress(done: int, whole: int, now: str) -> None:
            bar.update(task, completed=done, total=whole, description=now)

        figures = measure(target, options.kernels, progress)
    _show(figures, console)
    if before is not None:
        _check_same(before, figures, options.report)
        after = {**before, "performance": figures}
        path = report.write(after, options.report)
        render(after, options.report)
        console.print(f"report: {path}", soft_wrap=True, markup=False)
    return 0


def _read(path: Path) -> dict[str, Any]:
    """Return the report that the times are added to.

    Raises:
        ReportError: there is none, or it is no report.

    """
    if not (path / report.NAME if path.is_dir() else path).exists():
        raise ReportError(
            f"{path} has no report: times are added to that of `run --report {path}`; without "
            "--report they are shown"
        )
    return report.read(path)


def _check_same(before: Mapping[str, Any], figures: Mapping[str, Any], path: Path) -> None:
    """Refuse to add times to the report of another backend.

    Raises:
        ReportError: it is of another distribution, version or device.

    """
    for name in _ONE:
        reported = before["backend"].get(name)
        if reported != figures[name]:
            raise ReportError(
                f"{path}: its {name} is {reported!r}, but {figures[name]!r} was timed"
            )


def _show(figures: Mapping[str, Any], console: Console) -> None:
    limits = figures["limits"]
    console.print(
        f"a call costs {limits['overhead'] * 1e6:.1f} us, large arrays move at "
        f"{limits['bandwidth']['large'] / 1e9:.1f} GB/s, matrices multiply at "
        f"{limits['peak'] / 1e9:.0f} GFLOP/s; {figures['seconds']:.0f} s",
        highlight=False,
        soft_wrap=True,
    )
    if not figures["beside"]:
        console.print("no times of another backend stand beside these", style="yellow")
    _show_gains(figures, console)
    few = [f"{row['kernel']} ({row['size']})" for row in figures["rows"] if hurried(row)]
    if few:
        console.print(f"timed only a few times, as they take long: {_listed(few)}", soft_wrap=True)
    errors = {row["kernel"]: row["error"] for row in figures["rows"] if row["error"]}
    for kernel, error in {**errors, **figures["failed"]}.items():  # of each kernel one
        console.print(f"[yellow]not timed[/] {kernel}: {for_terminal(error)}", soft_wrap=True)


def _show_gains(figures: Mapping[str, Any], console: Console) -> None:
    listed = gains(figures)
    if listed:
        beside = figures["beside"]
        table = Table("kernel", "size", "decomposed", "could be", "judged by", "times faster")
        for gain in listed[:_SHOWN]:
            assert gain.estimate is not None  # or it would not be here
            times = (f"{one * 1e3:.3f} ms" for one in (gain.seconds, gain.estimate.seconds))
            source = f"{beside}'s time" if gain.estimate.source == "time" else "operations"
            table.add_row(gain.kernel, gain.size, *times, source, f"{gain.times:.1f}")
        console.print("slower by decomposition than it could be natively, the largest gain first:")
        console.print(table)
        if len(listed) > _SHOWN:
            console.print(f"... and {len(listed) - _SHOWN} more, in the report")
        if beside:
            console.print(
                f"could be: the time of {beside}'s native kernel, by the speeds of the two "
                "devices (of products if the operations are known, else of memory); never less "
                "than operations and bytes need",
                soft_wrap=True,
            )
    unknown = [f"{gain.kernel} {gain.seconds * 1e3:.3f} ms" for gain in without_estimate(figures)]
    if unknown:
        console.print(
            f"decomposed, with no estimate of what they could be: {_listed(unknown)}",
            soft_wrap=True,
        )


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
