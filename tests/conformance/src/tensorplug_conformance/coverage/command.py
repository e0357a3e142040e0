"""The command ``coverage``: runs a program on a backend, and shows what the backend ran of it."""

from __future__ import annotations

import json
import runpy
import sys
import traceback
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Column, Table

import tensorplug as tp
from tensorplug.observers.profile_views import bytes_text
from tensorplug_conformance.checks import Target
from tensorplug_conformance.coverage.measuring import LEFT, coverage
from tensorplug_conformance.differential.comparison import ProgramError
from tensorplug_conformance.running.opening import check_opens
from tensorplug_conformance.running.supervisor import Limits

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from tensorplug_conformance.coverage.measuring import Coverage, Moved, Saving, Use


_SHOWN: Final = 15  # lines of a table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--backend", required=True, metavar="NAME")
    parser.add_argument("--program", required=True, type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    parser.add_argument(
        "arguments", nargs="*", metavar="-- ARGUMENTS", help="of the program, after --"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the program, and show what it left to others; return 1 if it fails, else 0.

    Raises:
        ProgramError: there is no program.

    """
    if not options.program.is_file():
        raise ProgramError(f"there is no program {options.program}")
    check_opens(Target(options.backend), Limits())
    tp.set_backend(options.backend)  # for threads of the program, too
    program = _Program(options.program, options.arguments)
    with redirect_stdout(sys.stderr if options.json else sys.stdout):
        found = coverage(options.backend, program)
    if options.json:
        print(json.dumps(asdict(found), indent=1, allow_nan=False))  # noqa: T201  # the answer
    else:
        show(found, console)
    return int(program.failed)


class _Program:
    """A file that runs as a program; ``failed``: it has raised, or ended with another code."""

    def __init__(self, file: Path, arguments: Sequence[str]) -> None:
        self._file = str(file)
        self._arguments = arguments
        self.failed = False

    def __call__(self) -> None:
        sys.argv = [self._file, *self._arguments]
        sys.path.insert(0, str(Path(self._file).resolve().parent))
        try:
            runpy.run_path(self._file, run_name="__main__")
        except SystemExit as end:
            self.failed = bool(end.code)
        except Exception:  # noqa: BLE001  # the program's own: what it ran until then is shown
            traceback.print_exc()
            self.failed = True


def show(found: Coverage, console: Console) -> None:
    """Print what ran where, what crossed the bus, and what a native kernel would save."""
    console.print(
        f"[bold]{found.backend}[/]: {_copies(found.traffic.to_device)} to the device, "
        f"{_copies(found.traffic.to_host)} to the host; of these the program's own: "
        f"{_copies(found.own.to_device)}, and {_copies(found.own.to_host)}",
        highlight=False,
        soft_wrap=True,
    )
    table = Table("kernel", "how", *_right("calls", "ms", "copies", "to device", "to host"))
    for use in found.uses[:_SHOWN]:
        time = f"{use.seconds * 1e3:.3f}"
        table.add_row(use.kernel, _how(use, found), str(use.calls), time, *_moved(use))
    console.print(table)
    _more(found.uses, console)
    if not found.savings:
        console.print(f"nothing left {found.backend}", highlight=False)
        return
    console.print("what a native kernel would save, without its own time:", highlight=False)
    table = Table("kernel", "now", *_right("calls", "ms", "copies", "to device", "to host"))
    for saving in found.savings[:_SHOWN]:
        time = f"{saving.seconds * 1e3:.3f}"
        table.add_row(saving.kernel, saving.how, str(saving.calls), time, *_moved(saving))
    console.print(table)
    _more(found.savings, console)
    if any(saving.how not in LEFT for saving in found.savings):
        console.print(
            "the calls of a decomposed kernel are also those of the kernels that it calls: "
            "write the one or the others",
            soft_wrap=True,
            highlight=False,
        )


def _how(use: Use, found: Coverage) -> str:
    if use.device != found.backend:
        return f"on {use.device}, by the program"
    return f"{use.how}, in part" if use.partly else use.how


def _moved(one: Use | Saving) -> tuple[str, str, str]:
    """Return the number of copies, and their bytes in each direction."""
    to_device, to_host = one.traffic.to_device, one.traffic.to_host
    times = to_device.times + to_host.times
    if not times:
        return "", "", ""
    return str(times), bytes_text(to_device.bytes), bytes_text(to_host.bytes)


def _copies(moved: Moved) -> str:
    return f"{moved.times} copies, {bytes_text(moved.bytes)}"


def _right(*names: str) -> Iterator[Column]:
    return (Column(name, justify="right") for name in names)


def _more(items: Sequence[object], console: Console) -> None:
    if len(items) > _SHOWN:
        console.print(f"... and {len(items) - _SHOWN} more, in --json", highlight=False)
