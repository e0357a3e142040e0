"""The command ``compare``: its arguments, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tensorplug_conformance.checks import Target
from tensorplug_conformance.differential.comparison import Program, ProgramError, compare
from tensorplug_conformance.differential.scripts import script
from tensorplug_conformance.differential.showing import as_data, show
from tensorplug_conformance.running.opening import check_opens
from tensorplug_conformance.running.supervisor import Limits

if TYPE_CHECKING:
    import argparse

    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--backend",
        required=True,
        action="append",
        metavar="NAME",
        help="to be given twice: the one that is trusted, then the one that is asked about",
    )
    parser.add_argument("--program", required=True, type=Path, metavar="FILE")
    parser.add_argument(
        "--function", dest="only", metavar="NAME", help="call only this function of it"
    )
    parser.add_argument(
        "--seconds", type=float, default=600.0, metavar="N", help="the program may take"
    )
    parser.add_argument("--json", action="store_true", help="print data instead of text")
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="write a script that repeats the difference"
    )
    parser.add_argument(
        "arguments", nargs="*", metavar="-- ARGUMENTS", help="of the program, after --"
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Compare two backends; return 1 if they part, else 0."""
    if len(options.backend) != 2:
        times = "once" if len(options.backend) == 1 else f"{len(options.backend)} times"
        raise ProgramError(f"--backend must be given twice, not {times}")
    ours, theirs = map(Target, options.backend)
    for target in (ours, theirs):
        check_opens(target, Limits())
    program = Program(options.program, options.only, tuple(options.arguments), options.seconds)
    with console.status("") as status:
        comparison = compare(ours, theirs, program, status.update)
    if options.json:
        print(json.dumps(as_data(comparison), indent=1, allow_nan=False))  # noqa: T201  # the answer
    else:
        show(comparison, console)
    if comparison.first is None:
        return 1 if comparison.stopped else 0
    if options.script is not None:
        text = script(ours.backend, theirs.backend, comparison.first)
        if text:
            options.script.write_text(text, "utf-8")
        if not options.json:
            line = f"script: {options.script}" if text else "no script: the call cannot be written"
            console.print(line, soft_wrap=True, markup=False)
    return 1
