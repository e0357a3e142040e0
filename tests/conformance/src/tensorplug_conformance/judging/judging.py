"""All cases of a kernel that apply to a callable, the first one that it fails, and a soak."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import MARK, Case, Presentation, flat, mapped
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.denominator import Row, cases_of
from tensorplug_conformance.differential.shrinking import shrunk
from tensorplug_conformance.judging.session import JudgeSession, LostError, RaisedError, offset
from tensorplug_conformance.trying.faults import WrongResultError
from tensorplug_conformance.trying.references import worked_out
from tensorplug_conformance.trying.rows import planned, run_case
from tensorplug_conformance.trying.trial import Trial
from tensorplug_conformance.variants.histories import flipped
from tensorplug_conformance.variants.presentations import fitting
from tensorplug_conformance.verdicts import Failure, RowVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.judging.session import Judged
    from tensorplug_conformance.verdicts import Status

_WATCHED: Final = 1 << 17  # elements of a case after which its inputs are overwritten
_SHRUNK: Final = 1 << 16  # elements of a case that is made smaller
_SOAKED: Final = 4096  # elements of a case that is called often
_CASES: Final = 3
_BATCHES: Final = 10
_ROUNDS: Final = 25
_THREADS: Final = 4
_LOSSES: Final = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """The first case that fails, and the smallest inputs found that show the same.

    ``layouts``: of the inputs of the failed call. ``operands`` is None if a call with these alone
    does not show it.
    """

    case: str
    message: str
    layouts: list[dict[str, Any]]
    attributes: Mapping[str, Any]
    operands: list[Any] | None
    presentation: str = ""


@dataclass(slots=True)
class Judgement:
    """The verdict on one dtype.

    ``declined``: how many cases do not apply, by reason. ``views``: cases whose result is a view
    of an input, as it may be where elements are only moved. ``copied``: inputs that the library
    does not take as they lie. ``soaked``: calls of the soak. ``lost``: processes that died or
    hung; after some of them, the cases that follow are ``left_out``.
    """

    row: RowVerdict
    seed: int
    declined: Counter[str] = field(default_factory=Counter)
    views: int = 0
    copied: int = 0
    soaked: int = 0
    lost: int = 0
    left_out: int = 0
    finding: Finding | None = None


class Judge:
    """Judges a callable as one kernel."""

    def __init__(self, judged: Judged, entry: CaseEntry) -> None:
        self.judged = judged
        self.entry = entry
        self._session: JudgeSession | None = JudgeSession(judged)

    @property
    def session(self) -> JudgeSession:
        """The session; another one if its process is lost."""
        if self._session is not None and self._session.lost:
            self.close()
        if self._session is None:
            self._session = JudgeSession(self.judged)
        return self._session

    def close(self) -> None:
        """End the process."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def dtype(
        self,
        dtype: str,
        seed: int,
        *,
        soak: bool = False,
        fresh: bool = False,
        first: bool = False,
    ) -> Judgement:
        """Return the verdict on all cases of a dtype that apply.

        ``soak``: then call some of them thousands of times; ``fresh``: with other values each
        time. ``first``: no case after one that fails.
        """
        row = Row(self.entry.spec.name, dtype, "native")
        cases = [case for case in cases_of(self.entry, row, seed) if not case.refused]
        verdict = RowVerdict(row, "fail", len(cases))
        judgement = Judgement(verdict, seed)
        for number, case in enumerate(planned(self.entry, row, cases).cases):
            if (first and verdict.failed) or judgement.lost == _LOSSES:
                judgement.left_out = len(cases) - number
                break
            self._judge(case, judgement)
        if soak and not verdict.failed:
            for case, fault in self._soaked(row, seed, judgement, fresh=fresh):
                self._failed(case, Failure.of(case, fault), judgement, single=False)
                break
        passed: Status = "pass native" if verdict.passed else "not claimed"
        verdict.status = "fail" if verdict.failed else passed
        wrong = set(verdict.failed) - set(verdict.tolerated)
        verdict.vendor = "fail" if wrong else passed
        return judgement

    def _judge(self, case: Case, judgement: Judgement) -> None:
        session, verdict = self.session, judgement.row
        why = session.refusal(self.entry.spec, case)
        copied, declined = session.copied, verdict.declined
        failure = run_case(
            session, self.entry, verdict.row, case, aftermath=False, verdict=verdict
        )
        judgement.copied += session.copied - copied
        if verdict.declined > declined:
            judgement.declined[why or verdict.reason] += 1
        elif failure is None and not case.light:
            fault = self._lent(session, case, judgement)
            failure = Failure.of(case, fault) if fault else None
            verdict.passed -= bool(fault)
        if failure is not None:
            judgement.lost += session.lost
            self._failed(case, failure, judgement)

    def _lent(self, session: JudgeSession, case: Case, judgement: Judgement) -> str:
        """Return what is wrong with a result when the inputs are overwritten after the call."""
        if max((x.size for x in flat(case.inputs)), default=0) > _WATCHED:
            return ""
        outputs = session.call(self.entry.spec, session.operands(case), case.attributes)
        before = [session.read(output) for output in outputs]
        session.overwrite()
        if all(map(same_bits, before, map(session.read, outputs))):
            return ""
        judgement.views += self.entry.moves
        return "" if self.entry.moves else "its result is a view of an input, or computed later"

    def _failed(
        self, case: Case, failure: Failure, judgement: Judgement, *, single: bool = True
    ) -> None:
        row = judgement.row
        row.failed.append(case.id)
        row.tolerated += [case.id] * failure.tolerated
        if judgement.finding is not None:
            return
        row.failures.append(failure)
        failed, names = self._session, self.entry.spec.input_names
        assert failed is not None  # the session of the call
        layouts = _layouts(names, failed.last)
        presentation = failure.case.partition(MARK)[2]
        found: tuple[list[Any] | None, Mapping[str, Any]] = None, case.attributes
        small = sum(x.size for x in flat(case.inputs)) <= _SHRUNK
        if single and small and not failed.lost:
            kind = _kind(failure.message)

            def shows(operands: list[Any], attributes: dict[str, Any]) -> bool:
                again = self.again(row.row, operands, attributes, presentation)
                return not self.session.lost and again is not None and _kind(again.message) == kind

            if shows(list(case.inputs), dict(case.attributes)):
                found = shrunk(case.inputs, case.attributes, shows)
                again = self.again(row.row, found[0], found[1], presentation)
                layouts = _layouts(names, self.session.last)
                failure = again or failure
        message = failure.message
        judgement.finding = Finding(case.id, message, layouts, found[1], found[0], presentation)

    def again(
        self, row: Row, operands: Sequence[Any], attributes: Mapping[str, Any], presentation: str
    ) -> Failure | None:
        """Return the failure of a call with these inputs, presented in that way."""
        spec = self.entry.spec
        case = Case("smallest", tuple(operands), attributes)
        try:
            spec.resolve(case.types, attributes)
        except (TensorplugError, TypeError, ValueError, IndexError):
            return None
        if presentation:
            fit = fitting(spec, case, Presentation.of(presentation))
            case = replace(case, presentations=(fit,))
        return run_case(self.session, self.entry, row, case, aftermath=False)

    def _soaked(
        self, row: Row, seed: int, judgement: Judgement, *, fresh: bool
    ) -> Iterator[tuple[Case, str]]:
        """Yield cases that go wrong when they are called often, and how."""
        for batch in range(_BATCHES):
            cases = cases_of(self.entry, row, seed + (batch + 1) * fresh)
            fitting = [case for case in cases if self._soaks(case)]
            fitting.sort(key=lambda case: -max(x.size for x in flat(case.inputs)))
            for case in fitting[:_CASES]:
                try:
                    self._soak(row, case)
                except (WrongResultError, RaisedError, LostError) as error:
                    yield case, str(error)
                judgement.soaked += _ROUNDS * _THREADS

    def _soaks(self, case: Case) -> bool:
        sizes = [x.size for x in flat(case.inputs)]
        if case.refused or case.light or not sizes or max(sizes) > _SOAKED:
            return False
        return not self.session.refusal(self.entry.spec, case)

    def _soak(self, row: Row, case: Case) -> None:
        session, spec = self.session, self.entry.spec
        right = partial(worked_out, self.entry)
        once = replace(case, light=True)
        Trial(session, self.entry, row, once, right, RowVerdict(row, "fail", 1)).run()
        sets = [
            [mapped(session.upload, one) for one in inputs]
            for inputs in (case.inputs, flipped(spec, case))
        ]
        alone = []
        for operands in sets:
            outputs = session.attempt(spec, operands, case.attributes)
            if outputs is not None:  # otherwise the values are outside of the kernel's domain
                alone.append((operands, outputs[1]))
        results = session.soaked(
            spec, [one for one, _ in alone], case.attributes, _ROUNDS, _THREADS
        )
        meant = [
            x
            for thread in range(_THREADS)
            for number in range(_ROUNDS)
            for x in alone[(thread + number) % len(alone)][1]
        ]
        wrong = sum(not same_bits(*pair) for pair in zip(meant, results, strict=True))
        if wrong:
            raise WrongResultError(
                f"{wrong} of {len(meant)} results in {_THREADS} threads have other bits"
            )


def _kind(message: str) -> list[str]:
    """Return the words by which two failures are the same."""
    return re.findall(r"[a-z]{3,}", message)[:2]


def _layouts(names: Sequence[str], operands: Sequence[Any]) -> list[dict[str, Any]]:
    """Return how the inputs of a call lie, with strides and offset in elements."""
    return [
        {
            "input": name,
            "dtype": dt.of(array.dtype).name,
            "shape": list(array.shape),
            "order": _order(array),
            "strides": [n // array.itemsize for n in array.strides],
            "offset": offset(array) // array.itemsize,
        }
        for name, operand in zip(names, operands, strict=False)  # none before any call
        for array in flat([operand])
    ]


def _order(array: Array) -> str:
    flags = array.flags
    return "C" if flags.c_contiguous else "F" if flags.f_contiguous else "strided"
