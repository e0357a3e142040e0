"""Levels 2 and 3: one row of the report, case by case."""

from __future__ import annotations

import time
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING

from tensorplug.plugin import GradientNotFoundError, KernelNotFoundError, KernelRefusedError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import MARK, flat, mapped
from tensorplug_conformance.comparing.vendor import ToleratedError
from tensorplug_conformance.denominator import cases_of, is_told
from tensorplug_conformance.points.gradients import WrongGradientError, judge_gradient
from tensorplug_conformance.primitives import PRIMITIVES, REQUIRED_DTYPES
from tensorplug_conformance.trying.claims import claimed, in_vain
from tensorplug_conformance.trying.concurrency import disturbed, disturbed_often, widest
from tensorplug_conformance.trying.faults import DeclinedError, PresentationError, WrongResultError
from tensorplug_conformance.trying.leaks import left_behind, shows_leaks
from tensorplug_conformance.trying.needs import is_beyond, lacks_dtype
from tensorplug_conformance.trying.notes import unnoted
from tensorplug_conformance.trying.references import References, worked_out
from tensorplug_conformance.trying.reuse import mistaken, most_telling
from tensorplug_conformance.trying.surroundings import Surroundings
from tensorplug_conformance.trying.trial import Trial, outputs_of
from tensorplug_conformance.variants.histories import flipped
from tensorplug_conformance.variants.presentations import Presented, presented
from tensorplug_conformance.variants.ranks import ranks_of
from tensorplug_conformance.verdicts import Failure, RowVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Case, Presentation
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.denominator import Row
    from tensorplug_conformance.session import Session
    from tensorplug_conformance.trying.references import Right
    from tensorplug_conformance.verdicts import Status

    _More = Callable[[Session, KernelSpec, Case], str]


_QUOTED = 100  # characters of what a kernel prints
_MODEST = 1 << 17  # elements of a case that is called a few times more
KEPT = 5  # failures per row that are described; all of them are counted


def run_row(
    session: Session,
    entry: CaseEntry,
    row: Row,
    seed: int,
    references: References | None = None,
    reached: Callable[[str], None] = unnoted,
    told: BinaryIO | None = None,
) -> RowVerdict:
    """Return the verdict on all cases of ``row``; errors of the backend are part of it.

    ``references`` keeps expected values for the next row of the same kernel and dtype.
    ``reached`` is called with the name of each case, and of each presentation, before it runs.
    ``told``: a file that takes what must be compared; then the verdict lacks that, and another
    process completes it (``completed``). Gradients are compared here in any case.
    """
    started = time.perf_counter()
    cases = cases_of(entry, row, seed, blind=told is not None)
    verdict = RowVerdict(row, "fail", len(cases))
    dtype = dt.of(row.dtype)
    if dtype not in session.device.backend.dtypes:
        verdict.status = verdict.vendor = "unsupported dtype"
        verdict.unsupported = len(cases)
        return verdict
    demanded = row.kernel in PRIMITIVES and not session.falls_back
    optional = row.mode == "native" and not demanded
    if optional and not claimed(session, row.kernel, dtype):
        verdict.status = verdict.vendor = "not claimed"
        return verdict
    watched = _watched(entry, row, cases)
    further = _further(session, entry, row, cases)
    right = partial((references or References()).of, entry, row)
    plan = planned(entry, row, cases)
    done: list[tuple[str, Presentation]] = []
    surroundings = Surroundings()
    for case in plan.cases:
        last = case.id in watched
        failure = _run_case(
            session,
            entry,
            row,
            case,
            verdict,
            right,
            done,
            aftermath=last,
            reached=reached,
            told=told,
        )
        if failure is None and case.id in further:
            failure = _tried_further(session, entry, row, case, verdict, further[case.id])
        if failure is not None:
            verdict.failed.append(case.id)
            verdict.tolerated += [case.id] * failure.tolerated
            if len(verdict.failures) < KEPT:
                verdict.failures.append(failure)
    changed = surroundings.fault()
    if changed:  # no bounds excuse it
        first = cases[0].id
        verdict.passed -= first not in verdict.failed
        verdict.failed = [first, *(each for each in verdict.failed if each != first)]
        verdict.tolerated = [each for each in verdict.tolerated if each != first]
        failure = Failure.of(cases[0], f"in the calls of this row, {changed}")
        others = [each for each in verdict.failures if each.case.partition(MARK)[0] != first]
        verdict.failures = [failure, *others][:KEPT]
    refusals = sum(case.refused for case in cases)
    verdict.status = status_of(row, verdict, refusals)
    if verdict.status == "not claimed":
        empty = in_vain(session, entry, row, seed)
        if empty:
            verdict.status, verdict.reason = "fail", f"{empty}: {verdict.reason}"
    verdict.vendor = verdict.status
    if verdict.tolerated:
        verdict.vendor = status_of(row, lenient(verdict), refusals)
    verdict.coverage = plan.coverage(done) | ranks(plan.cases, verdict.failed)
    verdict.pairs = totals(verdict.coverage)
    verdict.seconds = time.perf_counter() - started
    return verdict


def _watched(entry: CaseEntry, row: Row, cases: Sequence[Case]) -> frozenset[str]:
    """Return the cases after which leaks are looked for.

    In one dtype, one case for each rank of the outputs, a large one and one with a long axis; else
    one alone.
    """
    showing = [case for case in cases if shows_leaks(case)]
    if row.mode != "native" or row.dtype != entry.leading.name:
        return frozenset(case.id for case in showing[:1])
    texts: dict[int, str] = {}
    for case in showing:
        outputs = outputs_of(entry.spec, case)
        texts.setdefault(max((len(out.shape) for out in outputs if out.known), default=0), case.id)
    modest = [case for case in showing if _elements(case) <= _MODEST]
    extreme = (max(modest, key=by, default=None) for by in (_elements, _longest))
    return frozenset(texts.values()) | {case.id for case in extreme if case is not None}


def _elements(case: Case) -> int:
    sizes: list[int] = [array.size for array in flat(case.inputs)]
    return max(sizes, default=0)


def _longest(case: Case) -> int:
    """Return the length of the longest axis of all inputs."""
    return max((length for array in flat(case.inputs) for length in array.shape), default=0)


def _further(
    session: Session, entry: CaseEntry, row: Row, cases: Sequence[Case]
) -> dict[str, _More]:
    """Return what else is tried with single cases of a row, by their ids.

    Threads are told apart by no dtype, so that they are tried in one.
    """
    by_case: dict[str, _More] = {}
    if row.mode != "native":
        return by_case
    possible = [case for case in cases if not lacks_dtype(session, entry.spec, case)]
    wide = widest(possible) if row.dtype == entry.leading.name else None
    if wide is not None:
        by_case[wide.id] = _in_threads
    telling = most_telling(possible)
    if telling is not None:
        by_case[telling.id] = mistaken
    return by_case


def _in_threads(session: Session, spec: KernelSpec, case: Case) -> str:
    inputs = (case.inputs, flipped(spec, case))
    several = 3 * [[mapped(session.upload, one) for one in some] for some in inputs]
    return disturbed_often(session, spec, several, case.attributes)


def _tried_further(
    session: Session, entry: CaseEntry, row: Row, case: Case, verdict: RowVerdict, more: _More
) -> Failure | None:
    """Return the failure of a case that was right, if it is wrong in these calls."""
    if session.how(entry.spec, case)[0] != row.mode:
        return None
    try:
        fault = more(session, entry.spec, case)
    except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
        fault = _told(error)
    verdict.passed -= bool(fault)
    return Failure.of(case, fault) if fault else None


def ranks(cases: Sequence[Case], failed: Sequence[str]) -> dict[str, list[int]]:
    """Return how many pairs of ranks of the first two inputs were right, of how many."""
    had = {case.id: ranks_of(case) for case in cases if not case.refused}
    of = set(had.values()) - {None}
    wrong = {had.get(name) for name in failed}
    return {"rank x rank": [len(of - wrong), len(of)]} if of else {}


def totals(coverage: Mapping[str, list[int]]) -> list[int]:
    """Return how many pairs of all properties are covered, of how many."""
    return [sum(counts) for counts in zip(*coverage.values(), strict=True)] or [0, 0]


def planned(entry: CaseEntry, row: Row, cases: Sequence[Case]) -> Presented:
    """Return the cases with the ways in which each is called: all pairs in some dtypes.

    Decomposed calls run kernels that have rows of their own, so they are called in few ways.
    """
    if row.mode == "gradient":
        return Presented(list(cases))
    own = [dtype.name for dtype in entry.dtypes]
    whole = row.dtype in (set(own) & REQUIRED_DTYPES or own[:1])
    native = row.mode == "native"
    return presented(entry.spec, cases, whole=native and whole, few=not native)


def run_case(
    session: Session,
    entry: CaseEntry,
    row: Row,
    case: Case,
    *,
    aftermath: bool = True,
    verdict: RowVerdict | None = None,
) -> Failure | None:
    """Return the failure of one case, or None if it passes or the backend lacks its dtypes.

    ``aftermath``: also check what the calls leave behind, which takes a while. ``verdict``: where
    the case is counted.
    """
    verdict = RowVerdict(row, "fail", 1) if verdict is None else verdict
    right = partial(worked_out, entry)
    watched = aftermath and shows_leaks(case)
    surroundings = Surroundings()
    failure = _run_case(session, entry, row, case, verdict, right, [], aftermath=watched)
    changed = surroundings.fault()
    return Failure.of(case, changed) if changed and failure is None else failure


def _run_case(
    session: Session,
    entry: CaseEntry,
    row: Row,
    case: Case,
    verdict: RowVerdict,
    right: Callable[[Case], Right],
    done: list[tuple[str, Presentation]],
    *,
    aftermath: bool,
    reached: Callable[[str], None] = unnoted,
    told: BinaryIO | None = None,
) -> Failure | None:
    """Run one case, count it in ``verdict``, and return its failure, if it is one.

    The presentations in which it was right are added to ``done``.
    """
    try:
        if lacks_dtype(session, entry.spec, case):
            verdict.unsupported += 1
            return None
        if is_beyond(session, entry.spec, case):
            verdict.beyond += 1
            return None
        reached(case.id)
        if row.mode == "gradient":
            worst = judge_gradient(session, entry, case)
        else:
            outside = told if is_told(case) else None
            trial = Trial(session, entry, row, case, right, verdict, reached, outside)
            with redirect_stdout(StringIO()) as printed:
                worst = trial.run()
            done += [(case.id, presentation) for presentation in trial.presented]
            if printed.getvalue():
                raise WrongResultError(f"it printed {printed.getvalue()[:_QUOTED]!r}")
            fault = _afterwards(trial) if aftermath else ""
            if fault:
                raise WrongResultError(fault)  # counted with all others below
            if trial.comparer.tolerated:
                raise ToleratedError(trial.comparer.tolerated)
    except DeclinedError as declined:
        verdict.declined += 1
        verdict.reason = verdict.reason or str(declined)
        return None
    except (KernelNotFoundError, KernelRefusedError, GradientNotFoundError) as missing:
        verdict.reason = verdict.reason or str(missing)
        return Failure.of(case, f"missing: {missing}")
    except ToleratedError as error:
        return Failure.of(case, str(error), tolerated=True)
    except PresentationError as error:
        return Failure.of(case, _told(error.__cause__), error.presentation)
    except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
        return Failure.of(case, _told(error))
    verdict.passed += 1
    verdict.ulp = max(verdict.ulp, worst)
    return None


def _told(error: BaseException | None) -> str:
    """Return what went wrong, as text."""
    if isinstance(error, WrongResultError | WrongGradientError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _afterwards(trial: Trial) -> str:
    """Return what goes wrong when a correct case is called many times; empty if nothing does."""
    session, case = trial.session, trial.case
    several = [session.operands(case), trial.decoys()]
    return left_behind(session, trial.spec, case) or disturbed(
        session, trial.spec, several, case.attributes
    )


def status_of(row: Row, verdict: RowVerdict, refusals: int) -> Status:
    """Return the status of a row; ``refusals``: how many cases run nothing, as they raise."""
    if verdict.failed:
        missing = sum(failure.message.startswith("missing: ") for failure in verdict.failures)
        return "missing" if missing == len(verdict.failures) and not verdict.passed else "fail"
    if verdict.passed > refusals:
        return {
            "native": "pass widened" if verdict.widened else "pass native",
            "decomposed": "pass decomposed",
            "gradient": "pass gradient",
        }[row.mode]
    return "not claimed" if verdict.declined else "unsupported dtype"


def lenient(verdict: RowVerdict) -> RowVerdict:
    """Return the verdict with the cases passed that are within a vendor's bounds."""
    tolerated = set(verdict.tolerated)
    return replace(
        verdict,
        passed=verdict.passed + len(tolerated),
        failed=[case for case in verdict.failed if case not in tolerated],
        failures=[failure for failure in verdict.failures if not failure.tolerated],
    )
