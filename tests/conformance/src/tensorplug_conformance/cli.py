"""The command line: ``tensorplug-conformance run | selftest``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from tensorplug import dtypes as dt
from tensorplug.errors import DTypeError
from tensorplug_conformance import SUITE_VERSION, report, terminal
from tensorplug_conformance.certify import certify
from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import LEVELS, Selection
from tensorplug_conformance.selftest import selftest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 means conformant (or nothing escaped), 1 not, 2 a wrong call."""
    options = _parser().parse_args(arguments)
    if options.command == "selftest":
        return selftest(Console(), options.backend, kinds=options.kinds)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    console = Console()
    target = Target(options.backend)
    selection = Selection(options.kernels, options.dtypes, options.mode)
    with terminal.ProgressDisplay(console, f"level {options.level}") as display:
        result = certify(
            target,
            options.level,
            seed=options.seed,
            selection=selection,
            started=display.started,
            heard=display.heard,
        )
    terminal.show(result, console)
    if options.report is not None:
        console.print(f"report: {report.write(result, options.report)}", soft_wrap=True)
    return 1 if result["blocked_by"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorplug-conformance",
        description="Prove what a tensorplug backend can do.",
        epilog="Exit code: 0 conformant, 1 not conformant, 2 wrong call.",
    )
    parser.add_argument("--version", action="version", version=f"suite {SUITE_VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the levels on an installed backend")
    run.add_argument("--backend", required=True, metavar="NAME")
    run.add_argument("--level", type=int, choices=LEVELS, default=max(LEVELS))
    run.add_argument("--report", type=Path, metavar="DIR", help="where report.json goes")
    run.add_argument("--kernels", default="*", metavar="GLOB", help="only these; no certificate")
    run.add_argument(
        "--dtypes",
        type=_dtypes,
        default=(),
        metavar="LIST",
        help="only these, with commas between",
    )
    run.add_argument("--mode", choices=("native", "decomposed", "both"), default="both")
    run.add_argument("--seed", type=_seed, default=0, help="of the ordinary inputs (default 0)")
    check = commands.add_parser("selftest", help="prove that the suite catches wrong backends")
    check.add_argument("--backend", default="cpu", metavar="NAME", help="the clean reference")
    check.add_argument("--kinds", default="*", metavar="GLOB", help="only these saboteurs")
    return parser


def _dtypes(text: str) -> tuple[str, ...]:
    try:
        return tuple(dt.of(part.strip()).name for part in text.split(",") if part.strip())
    except DTypeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seed(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer of 0 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
