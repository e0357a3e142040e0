"""The command line: ``tensorplug-conformance run | accept | repro | ...``."""

from __future__ import annotations

import argparse
import math
import os
import runpy
import secrets
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from tensorplug.plugin import DTypeError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.checks import Target
from tensorplug_conformance.comparing.vendor import PROFILES
from tensorplug_conformance.denominator import LEVELS, Selection
from tensorplug_conformance.differential import command as differential
from tensorplug_conformance.differential.comparison import ProgramError
from tensorplug_conformance.evidence import EvidenceError
from tensorplug_conformance.performance import command as performance
from tensorplug_conformance.performance.measurement import NotMeasurableError
from tensorplug_conformance.reporting import expectations, report, terminal
from tensorplug_conformance.reporting.differences import differences
from tensorplug_conformance.reporting.expectations import ExpectationError
from tensorplug_conformance.reporting.quoting import for_terminal
from tensorplug_conformance.reporting.rendering import FORMS, render
from tensorplug_conformance.reporting.rendering.support import write_support
from tensorplug_conformance.reporting.report import ReportError
from tensorplug_conformance.reporting.reproduction import UnknownCaseError, write_scripts
from tensorplug_conformance.reporting.verification import verify
from tensorplug_conformance.running import interrupts
from tensorplug_conformance.running.certify import EmptySelectionError, certify
from tensorplug_conformance.running.journal import Journal, ResumeError
from tensorplug_conformance.running.opening import NotOpenedError, check_opens
from tensorplug_conformance.running.progress import progress
from tensorplug_conformance.running.supervisor import Limits
from tensorplug_conformance.selftest import Plan, selftest
from tensorplug_conformance.selftest.generation import THINNED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_WRONG_CALL: Final = (
    EmptySelectionError,
    EvidenceError,
    ExpectationError,
    NotMeasurableError,
    NotOpenedError,
    ProgramError,
    ReportError,
    ResumeError,
    UnknownCaseError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 means conformant (or nothing wrong), 1 not, 2 a wrong call."""
    options = _parser().parse_args(arguments)
    console = Console()
    command: Callable[[argparse.Namespace, Console], int] = options.function
    try:
        tempfile.gettempdir()
    except OSError as error:
        console.print(f"[red]error[/]: {error}: set TMPDIR to a folder that can be written to")
        return 2
    try:
        return command(options, console)
    except KeyboardInterrupt:
        console.print("interrupted", style="yellow")
        return interrupts.INTERRUPTED
    except _WRONG_CALL as error:
        console.print(f"[red]error[/]: {for_terminal(error)}", soft_wrap=True, highlight=False)
        return 2


def _run(options: argparse.Namespace, console: Console) -> int:
    with interrupts.once():
        return _certified(options, console)


def _certified(options: argparse.Namespace, console: Console) -> int:
    draw = secrets.randbelow(1 << 32) if options.again_seed is None else options.again_seed
    target = Target(options.backend, draw=draw)
    selection = Selection(options.kernels, options.dtypes, options.mode, options.checks)
    journal = None
    if options.resume:
        journal = Journal.resumed(_folder(options))
        console.print(f"{len(journal.outcomes)} rows and checks are done already")
    elif options.report is not None:
        journal = Journal(options.report)
    expected = [] if options.expect is None else expectations.read(options.expect)
    limits = Limits(options.item_limit)
    opened = check_opens(target, limits)
    with progress(
        console, target.backend, options.level, options.jobs, expecting=bool(expected)
    ) as display:
        result = certify(
            target,
            options.level,
            seed=options.seed,
            examples=options.examples,
            selection=selection,
            collections=tuple(dict.fromkeys(options.evidence)),
            expectations=expected,
            jobs=options.jobs,
            limits=limits,
            profile=options.profile,
            journal=journal,
            opened=opened,
            started=display.started,
            heard=display.heard,
        )
    terminal.show(result, console)
    if options.report is not None:
        try:
            path = report.write(result, options.report)
            render(result, options.report)
            write_scripts(result, options.report / "repros")
        except OSError as error:  # such as a full disk; the journal stays
            if journal:
                journal.close()
            raise ReportError(f"the report cannot be written: {error}") from error
        console.print(f"report: {path} and {', '.join(sorted(FORMS))}", soft_wrap=True)
    if result["interrupted"]:
        if journal:
            journal.close()
            goes_on = "the same command with --resume goes on"
            if journal.lost:
                goes_on = f"the run cannot go on: its journal cannot be written: {journal.lost}"
            console.print(for_terminal(goes_on), soft_wrap=True)
        return interrupts.INTERRUPTED
    if journal:
        journal.remove()
    if expected and terminal.as_expected(result):
        return 0
    return 1 if report.verdict(result, options.profile)["blocked_by"] else 0


def _folder(options: argparse.Namespace) -> Path:
    """Return the folder of the run to resume."""
    if options.report is None:
        raise ResumeError("--resume needs the folder of the interrupted run: --report DIR")
    folder: Path = options.report
    return folder


def _selftest(options: argparse.Namespace, console: Console) -> int:
    plan = Plan(options.backend, options.kinds, options.generated, options.offset)
    return selftest(console, plan, options.jobs)


def _accept(options: argparse.Namespace, console: Console) -> int:
    found = report.read(options.report)
    before = expectations.read(options.output) if options.output.exists() else []
    more = expectations.accepted(found, options.reason, options.issue, options.expires)
    expectations.write(
        [*before, *(expectation for expectation in more if expectation not in before)],
        options.output,
    )
    console.print(f"{options.output}: {len(more)} more rows are expected to fail", soft_wrap=True)
    return 0


def _repro(options: argparse.Namespace, _console: Console) -> int:
    try:
        runpy.run_path(str(options.file), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except OSError as error:
        raise ReportError(f"{options.file} cannot be run: {error}") from error
    raise ReportError(
        f"{options.file} is not a script that this suite wrote: it ends without a verdict"
    )


def _diff(options: argparse.Namespace, console: Console) -> int:
    found = differences(report.read(options.old), report.read(options.new))
    terminal.show_differences(found, console)
    return 1 if found.regressed else 0


def _verify(options: argparse.Namespace, console: Console) -> int:
    found = report.parse(options.report)
    faults = verify(found)
    for fault in faults:
        console.print(f"[red]wrong[/] {for_terminal(fault)}", soft_wrap=True, highlight=False)
    if not faults:
        console.print("the report holds", style="green")
        terminal.show(found, console)
    return 1 if faults else 0


def _report(options: argparse.Namespace, console: Console) -> int:
    folder = options.output or (
        options.report if options.report.is_dir() else options.report.parent
    )
    found = report.read(options.report)
    folder.mkdir(parents=True, exist_ok=True)
    written = render(found, folder)
    write_scripts(found, folder / "repros")
    console.print("\n".join(map(str, written)), soft_wrap=True)
    return 0


def _support(options: argparse.Namespace, console: Console) -> int:
    reports = [report.read(path) for path in options.reports]
    names = [report["backend"]["name"] for report in reports]
    if len(set(names)) < len(names):
        raise ReportError(f"one report for each backend, not {', '.join(names)}")
    for path, item in zip(options.reports, reports, strict=True):
        faults = verify(item) or ["the run is partial"] * item["partial"]
        if faults:
            raise ReportError(f"{path}: {'; '.join(faults)}")
    console.print("\n".join(map(str, write_support(reports, options.output))), soft_wrap=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorplug-conformance",
        description="Prove what a tensorplug backend can do.",
        epilog="Exit code: 0 conformant, 1 not conformant, 2 wrong call.",
    )
    parser.add_argument("--version", action="version", version=f"suite {SUITE_VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_run(commands.add_parser("run", help="run the levels on an installed backend"))
    accept = commands.add_parser(
        "accept", help="write a report's failures to a file of expectations"
    )
    accept.set_defaults(function=_accept)
    accept.add_argument("report", type=Path)
    accept.add_argument("--reason", required=True, help="why it fails")
    accept.add_argument("--issue", default="", help="where it is tracked")
    accept.add_argument("--expires", type=_day, metavar="YYYY-MM-DD", help="until when")
    accept.add_argument(
        "--output", type=Path, default=Path("expectations.toml"), help="added to if it exists"
    )
    repro = commands.add_parser("repro", help="run one failed case again")
    repro.set_defaults(function=_repro)
    repro.add_argument("file", type=Path, help="a script from the folder repros of a report")
    check = commands.add_parser("selftest", help="show that the suite catches wrong backends")
    check.set_defaults(function=_selftest)
    check.add_argument("--backend", default="cpu", metavar="NAME", help="the clean reference")
    check.add_argument("--kinds", default="*", metavar="GLOB", help="only these saboteurs")
    check.add_argument(
        "--generated",
        type=_seed,
        default=THINNED,
        metavar="N",
        help="try one in N of those generated from the specs; 1: all, 0: none",
    )
    check.add_argument(
        "--offset", type=_seed, default=0, metavar="K", help="another sample of one in N"
    )
    check.add_argument(
        "--jobs", type=_count, metavar="N", help="number of processes (default: one per core)"
    )
    two = commands.add_parser("compare", help="find where two backends part in a program")
    two.set_defaults(function=differential.run)
    differential.add_arguments(two)
    timed = commands.add_parser("measure", help="time each kernel; it is never a condition")
    timed.set_defaults(function=performance.run)
    performance.add_arguments(timed)
    diff = commands.add_parser("diff", help="show what changed between two reports")
    diff.set_defaults(function=_diff)
    diff.add_argument("old", type=Path)
    diff.add_argument("new", type=Path)
    proof = commands.add_parser("verify", help="check that a report is consistent")
    proof.set_defaults(function=_verify)
    proof.add_argument("report", type=Path)
    again = commands.add_parser("report", help="render a report again")
    again.set_defaults(function=_report)
    again.add_argument("report", type=Path)
    again.add_argument("--output", type=Path, metavar="DIR")
    table = commands.add_parser("support", help="write a page on what several backends support")
    table.set_defaults(function=_support)
    table.add_argument("reports", type=Path, nargs="+", metavar="REPORT")
    table.add_argument("--output", type=Path, default=Path(), metavar="DIR")
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.set_defaults(function=_run)
    run.add_argument("--backend", required=True, metavar="NAME")
    run.add_argument("--level", type=int, choices=LEVELS, default=max(LEVELS))
    run.add_argument("--report", type=Path, metavar="DIR", help="where the report goes")
    run.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run that was interrupted, whose report --report names",
    )
    run.add_argument("--expect", type=Path, metavar="FILE", help="known failures; see accept")
    run.add_argument(
        "--kernels",
        type=_globs,
        default=(),
        metavar="GLOBS",
        help="only these, separated by commas; no certificate",
    )
    run.add_argument(
        "--checks",
        type=_check_globs,
        default=(),
        metavar="GLOBS",
        help="only these checks of levels 0, 1 and 4, and no rows unless --kernels names some",
    )
    run.add_argument(
        "--dtypes",
        type=_dtypes,
        default=(),
        metavar="LIST",
        help="only these, separated by commas",
    )
    run.add_argument(
        "--evidence",
        action="append",
        default=[],
        metavar="NAME",
        help="also the tests that an installed package has under this name; never a condition",
    )
    run.add_argument(
        "--onnx",
        action="append_const",
        dest="evidence",
        const="onnx",
        help="the same as --evidence onnx: ONNX's own tests; needs tensorplug-onnx",
    )
    run.add_argument("--mode", choices=("native", "decomposed", "both"), default="both")
    run.add_argument(
        "--jobs",
        type=_count,
        default=_processors(),
        metavar="N",
        help="number of processes (default: the number of cores, %(default)s)",
    )
    run.add_argument(
        "--item-limit",
        type=_seconds,
        default=Limits().item,
        metavar="SECONDS",
        help="for one kernel in one dtype, or one check (default %(default)g)",
    )
    run.add_argument(
        "--profile",
        choices=PROFILES,
        default=PROFILES[0],
        help="the verdict that decides the exit code; the report has both (default %(default)s)",
    )
    run.add_argument("--seed", type=_seed, default=0, help="of the ordinary inputs (default 0)")
    run.add_argument(
        "--again-seed",
        type=_seed,
        metavar="N",
        help="of the sample that a plain process is asked again (default: a random one)",
    )
    run.add_argument(
        "--examples",
        type=_seed,
        default=0,
        metavar="N",
        help="random variations of the cases that are tried beside them, per row (default 0)",
    )


def _globs(text: str) -> tuple[str, ...]:
    found = _listed(text, "kernel")
    return () if "*" in found else found  # a run of the whole catalogue may be named


def _check_globs(text: str) -> tuple[str, ...]:
    return _listed(text, "check")


def _listed(text: str, what: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} names no {what}")
    return found


def _dtypes(text: str) -> tuple[str, ...]:
    try:
        return tuple(dt.of(part.strip()).name for part in text.split(",") if part.strip())
    except DTypeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seed(text: str) -> int:
    return _integer(text, 0)


def _count(text: str) -> int:
    return _integer(text, 1)


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least {least}")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day like 2027-01-31") from None


if __name__ == "__main__":
    sys.exit(main())
