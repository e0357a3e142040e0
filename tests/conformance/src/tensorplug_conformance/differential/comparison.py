"""Runs a program on two backends and finds the first kernel at which they part.

The runs give the calls of the program, at the level of ops, so that it does not matter which
kernels a backend decomposes. Then the second backend is called with the *first* one's inputs, call
by call: an error that comes from an earlier one is blamed on that, and on no later kernel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import child_processes
from tensorplug_conformance.case import Case
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.differential.alignment import Alignment, align
from tensorplug_conformance.differential.caller import Answer, Caller, NotCallableError
from tensorplug_conformance.differential.calls import Arrays, Call, Outcome, Place, read_calls
from tensorplug_conformance.differential.judging import Verdict, judge_call
from tensorplug_conformance.differential.shrinking import shrunk
from tensorplug_conformance.extensions import extension_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks import Target


_LINES: Final = 12  # of a program's output that are quoted
_SHRINKING: Final = 25  # processes that may be lost while inputs are made smaller
_HASHING: Final = "0"  # sets of strings have one order


class ProgramError(Exception):
    """The program cannot be run, or makes no call that could be compared."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is run: a file, as a program or one of its functions, and its arguments."""

    file: Path
    function: str | None = None
    arguments: tuple[str, ...] = ()
    seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program: its ``calls``, and how it ended."""

    backend: str
    calls: list[Call]
    outcomes: dict[int, Outcome]
    arrays: Arrays
    ended: str
    output: str
    cut: str

    @property
    def ops(self) -> list[Call]:
        """The calls of the program itself on this backend."""
        return [call for call in self.calls if not call.depth and not call.elsewhere]

    @property
    def unfinished(self) -> Call | None:
        """The innermost call that did not return, where the process died."""
        items = [call for call in self.calls if call.number not in self.outcomes]
        return items[-1] if items and self.ended and not self.cut else None


@dataclass(frozen=True, slots=True)
class Finding:
    """A call in which the backends part, with the smallest inputs that were found.

    ``faults``: of the first and the second backend. ``how``: by what each runs it. ``within``: the
    op in whose decomposition the kernel is; empty if it is the op itself. ``history``: called
    again, the kernel was right: the program shows it, one call does not.
    """

    kernel: str
    text: str
    place: Place | None
    faults: tuple[str, str]
    verdict: Verdict
    how: tuple[str, str]
    number: int
    operands: list[Any]
    attributes: dict[str, Any]
    within: str = ""
    history: bool = False
    shrunk: bool = True


@dataclass(slots=True)
class Comparison:
    """What came of it.

    ``first``: the first finding. ``others``: later ones, a kernel each, with their number.
    ``largest``: the call within the bounds whose outputs are farthest apart, and its verdict.
    ``unjudged``: calls about which nothing can be said, with the reason. ``stopped``: why the
    calls were not compared to the end.
    """

    runs: tuple[Run, Run]
    alignment: Alignment
    compared: int = 0
    first: Finding | None = None
    others: dict[str, tuple[int, Place | None]] = field(default_factory=dict)
    largest: tuple[Call, Verdict] | None = None
    unjudged: list[tuple[Call, str]] = field(default_factory=list)
    fallbacks: int = 0
    stopped: str = ""


def compare(
    ours: Target,
    theirs: Target,
    program: Program,
    progress: Callable[[str], None] = lambda _text: None,
) -> Comparison:
    """Run ``program`` on two backends; return where ``theirs`` parts from ``ours``.

    ``progress`` hears what is being done.

    Raises:
        ProgramError: the program fails on ``ours``, or makes no call there.

    """
    if not program.file.is_file():
        raise ProgramError(f"there is no program {program.file}")
    with tempfile.TemporaryDirectory(prefix="tensorplug-compare-") as folder:
        runs = []
        for name, target in (("a", ours), ("b", theirs)):
            progress(f"running {program.file} on {target.backend}")
            path = Path(folder, name)
            path.mkdir()
            runs.append(_recorded(target, program, path))
        if not runs[0].ops:
            end = f"; it {runs[0].ended}\n{runs[0].output}" if runs[0].ended else ""
            raise ProgramError(f"{program.file} makes no kernel call on {ours.backend}{end}")
        if runs[0].ended:
            raise ProgramError(
                f"{program.file} {runs[0].ended} on {ours.backend}\n{runs[0].output}"
            )
        search = _Search(ours, theirs, (runs[0], runs[1]))
        try:
            return search.run(progress)
        finally:
            search.close()


def _recorded(target: Target, program: Program, folder: Path) -> Run:
    request = {
        "backend": target.backend,
        "factory": target.factory,
        "program": str(program.file),
        "function": program.function,
        "arguments": program.arguments,
    }
    module = "tensorplug_conformance.differential.recorder"
    arguments = child_processes.module_arguments(module, str(folder), json.dumps(request))
    output = folder / "output"
    ended = ""
    with output.open("wb") as file:
        try:
            code = subprocess.run(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONHASHSEED": _HASHING},
                timeout=program.seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = f"did not end within {program.seconds:.0f} s"
        else:
            if code:
                ended = f"died of signal {-code}" if code < 0 else f"ended with exit status {code}"
    lines = output.read_text("utf-8", errors="replace").splitlines()
    calls, outcomes, cut = read_calls(folder)
    last = "\n".join(lines[-_LINES:])
    return Run(target.backend, calls, outcomes, Arrays(folder), ended, last, cut)


class _Search:
    """Calls both backends with the recorded inputs, and judges what comes."""

    def __init__(self, ours: Target, theirs: Target, runs: tuple[Run, Run]) -> None:
        self._runs = runs
        self._callers = Caller(ours), Caller(theirs)
        self._known: Mapping[str, CaseEntry] = entries(extension_tables())
        self._seen: set[tuple[Any, ...]] = set()
        self._found = Comparison(runs, align(runs[0].ops, runs[1].ops))

    def close(self) -> None:
        for caller in self._callers:
            caller.close()

    def run(self, progress: Callable[[str], None]) -> Comparison:
        comparison, pairs = self._found, self._found.alignment.partners
        ops = self._runs[0].ops
        for at, call in enumerate(ops):
            if at % 100 == 0:
                progress(f"call {at + 1} of {len(ops)}")
            try:
                self._look(call, pairs.get(call.number))
            except NotCallableError as error:
                comparison.stopped = f"{error}; calls from {call.text} on were not compared"
                break
        return comparison

    def _look(self, call: Call, partner: Call | None) -> None:
        """Compare one op of the first run with the second backend's, and with its own run."""
        ran = self._runs[0].outcomes.get(call.number)
        if ran is None or ran.outputs is None:  # the program caught its error
            return
        if "fallback" in (call.how, partner and partner.how):
            self._found.fallbacks += 1
            return
        if call.key not in self._seen:
            self._seen.add(call.key)
            self._found.compared += 1
            if self._replayed(call, ran.outputs, partner):
                return
        if partner is not None and partner.key == call.key:
            self._recorded(call, ran.outputs, partner)

    def _replayed(self, call: Call, outputs: list[str], partner: Call | None) -> bool:
        """Call the second backend; return whether it parts from the first one."""
        arrays = self._runs[0].arrays
        operands = arrays.operands(call.inputs)
        answer = self._callers[1].call(call.kernel, operands, call.attributes)
        verdict = self._verdict(
            call.kernel, operands, call.attributes, arrays.operands(outputs), answer
        )
        if not verdict.parted:
            self._note(call, verdict)
            return False
        if self._found.first is None:
            self._found.first = self._inside(call, partner) or self._finding(
                call, operands, verdict, (call.how, answer.how)
            )
        else:
            self._count(call)
        return True

    def _recorded(self, call: Call, outputs: list[str], partner: Call) -> None:
        """Judge what the second run itself gave for the same inputs."""
        one, other = self._runs
        theirs = other.outcomes.get(partner.number)
        if theirs is None:
            died = f"the process {other.ended} in this call" if other.ended else ""
            answer = Answer(None, error=died, gone=True) if died and not other.cut else None
        elif theirs.outputs is None:
            answer = Answer(None, error=theirs.error)
        elif theirs.outputs == outputs:
            return
        else:
            answer = Answer(other.arrays.operands(theirs.outputs), partner.how)
        if answer is None:
            return
        operands = one.arrays.operands(call.inputs)
        verdict = self._verdict(
            call.kernel, operands, call.attributes, one.arrays.operands(outputs), answer
        )
        if verdict.parted and self._found.first is None:
            how = call.how, partner.how
            self._found.first = self._finding(call, operands, verdict, how, history=True)
        elif verdict.parted:
            self._count(call)

    def _count(self, call: Call) -> None:
        number, place = self._found.others.get(call.kernel, (0, call.place))
        self._found.others[call.kernel] = number + 1, place

    def _note(self, call: Call, verdict: Verdict) -> None:
        if verdict.unjudged:
            self._found.unjudged.append((call, verdict.unjudged))
        elif verdict.ulp and (
            self._found.largest is None or verdict.ulp > self._found.largest[1].ulp
        ):
            self._found.largest = call, verdict

    def _verdict(
        self,
        kernel: str,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        ours: Sequence[Any],
        answer: Answer,
    ) -> Verdict:
        if answer.outputs is None:
            return Verdict(float("inf"), faults=("", answer.error))
        return judge_call(self._known.get(kernel), operands, attributes, ours, answer.outputs)

    def _inside(self, op: Call, partner: Call | None) -> Finding | None:
        """Return the first kernel inside a decomposition of the second backend that is wrong."""
        if partner is None:
            return None
        run = self._runs[1]
        for call in run.calls:
            if call.number <= partner.number:
                continue
            if not call.depth:
                return None
            ended = run.outcomes.get(call.number)
            if call.how != "native" or ended is None or ended.outputs is None:
                continue
            operands = run.arrays.operands(call.inputs)
            right = self._callers[0].call(call.kernel, operands, call.attributes)
            if right.outputs is None:
                continue
            answer = Answer(run.arrays.operands(ended.outputs), call.how)
            verdict = self._verdict(call.kernel, operands, call.attributes, right.outputs, answer)
            if verdict.parted:
                how = right.how, call.how
                return self._finding(call, operands, verdict, how, within=op.kernel)
        return None

    def _finding(
        self,
        call: Call,
        operands: list[Any],
        verdict: Verdict,
        how: tuple[str, str],
        *,
        within: str = "",
        history: bool = False,
    ) -> Finding:
        attributes = call.attributes
        small = False
        if not history:
            self._callers[1].allow(_SHRINKING)
            shows = self._shows(call.kernel, verdict)
            small = shows(operands, attributes)
            if small:
                operands, attributes = shrunk(operands, attributes, shows)
                verdict = self._called(call.kernel, operands, attributes) or verdict
            self._callers[1].allow()
        return Finding(
            call.kernel,
            call.text,
            call.place,
            verdict.faults,
            verdict,
            how,
            call.number,
            operands,
            attributes,
            within,
            history,
            small,
        )

    def _called(
        self, kernel: str, operands: list[Any], attributes: dict[str, Any]
    ) -> Verdict | None:
        """Return the verdict on a call; None if the first backend cannot make it."""
        entry = self._known.get(kernel)
        if entry is not None and not _fits(entry, operands, attributes):
            return None
        right = self._callers[0].call(kernel, operands, attributes)
        if right.outputs is None:
            return None
        answer = self._callers[1].call(kernel, operands, attributes)
        return self._verdict(kernel, operands, attributes, right.outputs, answer)

    def _shows(self, kernel: str, first: Verdict) -> Callable[[list[Any], dict[str, Any]], bool]:
        """Return what says whether a call shows the same: the same backend is wrong."""
        wrong = tuple(map(bool, first.faults))

        def shows(operands: list[Any], attributes: dict[str, Any]) -> bool:
            try:
                outcome = self._called(kernel, operands, attributes)
            except NotCallableError:
                return False
            return outcome is not None and tuple(map(bool, outcome.faults)) == wrong

        return shows


def _fits(entry: CaseEntry, operands: list[Any], attributes: Mapping[str, Any]) -> bool:
    """Return whether the spec takes the call; asked here, since a process costs more."""
    try:
        entry.spec.resolve(Case("", tuple(operands)).types, attributes)
    except Exception:  # noqa: BLE001  # sizes that do not belong together fail in many ways
        return False
    return True
