"""The command line: ``tensorplug-conformance run | accept | repro | ...``."""

from __future__ import annotations

import runpy
import secrets
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final

from rich.console import Console

from tensorplug.plugin import child_processes
from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import NATIVE, Selection
from tensorplug_conformance.differential.comparison import ProgramError
from tensorplug_conformance.evidence import EvidenceError
from tensorplug_conformance.judging.session import NotJudgedError
from tensorplug_conformance.performance.measurement import NotMeasurableError
from tensorplug_conformance.reporting import expectations, report, terminal
from tensorplug_conformance.reporting.differences import differences
from tensorplug_conformance.reporting.expectations import ExpectationError
from tensorplug_conformance.reporting.quoting import for_terminal
from tensorplug_conformance.reporting.rendering import FORMS, render
from tensorplug_conformance.reporting.rendering.badge import PARTIAL_RUN, standing
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
from tensorplug_conformance.running.wheels import misplaced_libraries
from tensorplug_conformance.selftest import Plan, selftest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

from tensorplug_conformance.arguments import make_parser
from tensorplug_conformance.attesting import command as attesting
from tensorplug_conformance.attesting import statement
from tensorplug_conformance.attesting.statement import SignatureError
from tensorplug_conformance.coverage import command as coverage
from tensorplug_conformance.differential import command as differential
from tensorplug_conformance.judging import command as judging
from tensorplug_conformance.performance import command as performance

_WRONG_CALL: Final = (
    EmptySelectionError,
    EvidenceError,
    ExpectationError,
    NotJudgedError,
    NotMeasurableError,
    NotOpenedError,
    ProgramError,
    ReportError,
    ResumeError,
    SignatureError,
    UnknownCaseError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 means conformant (or nothing wrong), 1 not, 2 a wrong call."""
    options = make_parser().parse_args(arguments)
    console = Console()
    try:
        tempfile.gettempdir()
    except OSError as error:
        console.print(f"[red]error[/]: {error}: set TMPDIR to a folder that can be written to")
        return 2
    try:
        return _COMMANDS[options.command](options, console)
    except KeyboardInterrupt:
        console.print("interrupted", style="yellow")
        return interrupts.INTERRUPTED
    except _WRONG_CALL as error:
        console.print(f"[red]error[/]: {for_terminal(error)}", soft_wrap=True, highlight=False)
        return 2


def _warn_of_wheel(distribution: str, console: Console) -> None:
    libraries = misplaced_libraries(distribution) if distribution else []
    if libraries:
        console.print(
            f"[yellow]warning[/]: the wheel of {for_terminal(distribution)} is for all platforms, "
            f"but holds {for_terminal(', '.join(libraries))}: tag it with its platform",
            soft_wrap=True,
            highlight=False,
        )


def _run(options: argparse.Namespace, console: Console) -> int:
    with interrupts.once():
        return _certified(options, console)


def _certified(options: argparse.Namespace, console: Console) -> int:
    draw = secrets.randbelow(1 << 32) if options.again_seed is None else options.again_seed
    target = Target(options.backend, draw=draw, falls_back=options.partial)
    chosen = options.kernels, options.dtypes, options.mode, options.checks
    selection = Selection(*chosen, registered=options.partial)
    level = NATIVE if options.partial else options.level
    journal = None
    if options.resume:
        journal = Journal.resumed(_folder(options))
        console.print(f"{len(journal.outcomes)} rows and checks are done already")
    elif options.report is not None:
        journal = Journal(options.report)
    expected = [] if options.expect is None else expectations.read(options.expect)
    limits = Limits(options.item_limit)
    key = None if options.sign is None else statement.private_key(options.sign)
    if key is not None and options.report is None:
        raise SignatureError("--sign needs --report DIR: the report is what is signed")
    opened = check_opens(target, limits)
    with progress(
        console, target.backend, level, options.jobs, expecting=bool(expected)
    ) as display:
        result = certify(
            target,
            level,
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
    _warn_of_wheel(result["backend"].get("distribution", ""), console)
    if options.report is not None:
        try:
            path = report.write(result, options.report)
            render(result, options.report)
            write_scripts(result, options.report / "repros")
        except OSError as error:  # such as a full disk; the journal stays
            if journal:
                journal.close()
            raise ReportError(f"the report cannot be written: {error}") from error
        if key is not None and not result["interrupted"]:
            signed = statement.sign(options.report, result, key, options.valid)
            console.print(f"signed: {signed}", soft_wrap=True)
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
    content = report.read(options.report)
    before = expectations.read(options.output) if options.output.exists() else []
    more = expectations.accepted(content, options.reason, options.issue, options.expires)
    expectations.write(
        [*before, *(expectation for expectation in more if expectation not in before)],
        options.output,
    )
    console.print(f"{options.output}: {len(more)} more rows are expected to fail", soft_wrap=True)
    return 0


def _repro(options: argparse.Namespace, _console: Console) -> int:
    if len(options.files) > 1:  # each in a process of its own: one that crashes ends no other
        return max(_repeated_apart(file) for file in options.files)
    (file,) = options.files
    try:
        runpy.run_path(str(file), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except OSError as error:
        raise ReportError(f"{file} cannot be run: {error}") from error
    raise ReportError(f"{file} is not a script that this suite wrote: it ends without a verdict")


def _repeated_apart(file: Path) -> int:
    arguments = child_processes.module_arguments("tensorplug_conformance", "repro", str(file))
    code = subprocess.run([sys.executable, *arguments], check=False).returncode
    if code in (0, 1, 2):
        return code
    end = child_processes.describe_end(code).text
    print(f"{file}: fails: {end}", flush=True)  # noqa: T201  # the answer
    return 1


def _diff(options: argparse.Namespace, console: Console) -> int:
    changes = differences(report.read(options.old), report.read(options.new))
    terminal.show_differences(changes, console)
    return 1 if changes.regressed else 0


def _report(options: argparse.Namespace, console: Console) -> int:
    folder = options.output or (
        options.report if options.report.is_dir() else options.report.parent
    )
    content = report.read(options.report)
    folder.mkdir(parents=True, exist_ok=True)
    written = render(content, folder)
    write_scripts(content, folder / "repros")
    console.print("\n".join(map(str, written)), soft_wrap=True)
    return 0


def _support(options: argparse.Namespace, console: Console) -> int:
    reports = [report.read(path) for path in options.reports]
    names = [report["backend"]["name"] for report in reports]
    if len(set(names)) < len(names):
        raise ReportError(f"one report for each backend, not {', '.join(names)}")
    for path, item in zip(options.reports, reports, strict=True):
        faults = verify(item) or ["the run is partial"] * (standing(item) == PARTIAL_RUN)
        if faults:
            raise ReportError(f"{path}: {'; '.join(faults)}")
    console.print("\n".join(map(str, write_support(reports, options.output))), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace, Console], int]]] = {
    "accept": _accept,
    "compare": differential.run,
    "coverage": coverage.run,
    "diff": _diff,
    "judge": judging.run,
    "key": attesting.run_key,
    "measure": performance.run,
    "registry": attesting.run_registry,
    "report": _report,
    "repro": _repro,
    "run": _run,
    "selftest": _selftest,
    "support": _support,
    "verify": attesting.run_verify,
}
