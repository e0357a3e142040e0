"""The arguments of the command line."""

from __future__ import annotations

import argparse
import math
import os
from datetime import date
from pathlib import Path

from tensorplug.plugin import DTypeError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.attesting import command as attesting
from tensorplug_conformance.comparing.vendor import PROFILES
from tensorplug_conformance.coverage import command as coverage
from tensorplug_conformance.denominator import LEVELS
from tensorplug_conformance.differential import command as differential
from tensorplug_conformance.judging import command as judging
from tensorplug_conformance.performance import command as performance
from tensorplug_conformance.running.supervisor import Limits
from tensorplug_conformance.selftest.generation import THINNED


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
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
    accept.add_argument("report", type=Path)
    accept.add_argument("--reason", required=True, help="why it fails")
    accept.add_argument("--issue", default="", help="where it is tracked")
    accept.add_argument("--expires", type=_day, metavar="YYYY-MM-DD", help="until when")
    accept.add_argument(
        "--output", type=Path, default=Path("expectations.toml"), help="added to if it exists"
    )
    repro = commands.add_parser("repro", help="run failed cases again")
    repro.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a script from the folder repros of a report",
    )
    check = commands.add_parser("selftest", help="show that the suite catches wrong backends")
    check.add_argument("--backend", default="cpu", metavar="NAME", help="the clean reference")
    check.add_argument(
        "--kinds", default="*", metavar="GLOB", help="only saboteurs of these kinds or names"
    )
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
    differential.add_arguments(two)
    watched = commands.add_parser("coverage", help="show what a backend runs of a program")
    coverage.add_arguments(watched)
    timed = commands.add_parser("measure", help="time each kernel; it is never a condition")
    performance.add_arguments(timed)
    one = commands.add_parser("judge", help="judge any callable as a kernel, without a backend")
    judging.add_arguments(one)
    _add_dtypes(one)
    _add_seed(one)
    diff = commands.add_parser("diff", help="show what changed between two reports")
    diff.add_argument("old", type=Path)
    diff.add_argument("new", type=Path)
    proof = commands.add_parser("verify", help="check a report, its signature and rows of it")
    attesting.add_verify(proof)
    attesting.add_key(commands.add_parser("key", help="make a pair of keys for signatures"))
    attesting.add_registry(
        commands.add_parser("registry", help="check a folder of signed reports; write its table")
    )
    again = commands.add_parser("report", help="render a report again")
    again.add_argument("report", type=Path)
    again.add_argument("--output", type=Path, metavar="DIR")
    table = commands.add_parser("support", help="write a page on what several backends support")
    table.add_argument("reports", type=Path, nargs="+", metavar="REPORT")
    table.add_argument("--output", type=Path, default=Path(), metavar="DIR")
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("--backend", required=True, metavar="NAME")
    scope = run.add_mutually_exclusive_group()
    scope.add_argument("--level", type=int, choices=LEVELS, default=max(LEVELS))
    scope.add_argument(
        "--partial",
        action="store_true",
        help="certify the kernels that the backend registers, however few",
    )
    run.add_argument("--report", type=Path, metavar="DIR", help="where the report goes")
    run.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run that was interrupted, whose report --report names",
    )
    run.add_argument("--sign", type=Path, metavar="KEY", help="sign the report; see key")
    run.add_argument(
        "--valid", type=_count, default=365, metavar="DAYS", help="of a signature (default 365)"
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
    _add_dtypes(run)
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
    _add_seed(run)
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


def _add_dtypes(parser: argparse.ArgumentParser) -> None:
    only = "only these, separated by commas"
    parser.add_argument("--dtypes", type=_dtypes, default=(), metavar="LIST", help=only)


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=_seed, default=0, help="of the ordinary inputs (default 0)")


def _globs(text: str) -> tuple[str, ...]:
    globs = _listed(text, "kernel")
    return () if "*" in globs else globs  # a run of the whole catalogue may be named


def _check_globs(text: str) -> tuple[str, ...]:
    return _listed(text, "check")


def _listed(text: str, what: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise argparse.ArgumentTypeError(f"{text!r} names no {what}")
    return parts


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
