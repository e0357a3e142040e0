"""Tries saboteurs: each in the rows of its kernel, all of them in turn on one engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded, Relation, flat, mapped
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row, cases_of
from tensorplug_conformance.points.gradients import judge_gradient
from tensorplug_conformance.selftest.kinds.rules import install_rule
from tensorplug_conformance.selftest.sabotage import Saboteur, Witness, install, is_installable
from tensorplug_conformance.trying.rows import planned, run_case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.session import Session


Outcome = Literal["caught", "escaped", "harmless"]
_PROBES = 6
_CALLS = 3  # some are wrong from the third call on
_LARGEST = 4096  # elements of a probe


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one saboteur: the evidence, or why it is harmless.

    ``harmless``: neither an input of the cases, nor a special value in it for which the oracle has
    an answer, makes a difference: a lost NaN in a kernel of integers, for example.
    """

    saboteur: Saboteur
    outcome: Outcome
    evidence: str


@dataclass(slots=True)
class _Prepared:
    """The cases of a row, with expected outputs computed once for all saboteurs, when needed."""

    entry: CaseEntry
    planned: Sequence[Case]
    slopes: dict[str, Any] = field(default_factory=dict)
    _worked: list[Case] = field(default_factory=list)

    def cases(self) -> Iterator[Case]:
        """Yield the cases; those after the one that catches a saboteur are not worked out."""
        for at, case in enumerate(self.planned):
            if at == len(self._worked):
                self._worked.append(_worked_out(self.entry, case))
            yield self._worked[at]

    def is_bounded(self) -> bool:
        """Return whether results may be off by more than ulps."""
        expected = [case.expected for case in self.cases()]
        return any(answer is None for answer in expected) or any(
            isinstance(one, Bounded) and bool(np.any(one.bound))
            for answer in expected
            for one in (answer if isinstance(answer, tuple) else ())
        )

    def probes(self) -> list[Case]:
        """Return cases beyond the suite's: whether a saboteur makes any difference."""
        able = (case for case in self.planned if _may_be_special(case))
        return [_special(self.entry, case) for case in islice(able, _PROBES)]


class Bench:
    """One session on a clean backend, on which saboteurs take turns."""

    def __init__(self, session: Session, known: Mapping[str, CaseEntry], seed: int = 0) -> None:
        self.session = session
        self.known = known
        self.seed = seed
        self._prepared: dict[Row, _Prepared] = {}

    def try_one(self, saboteur: Saboteur) -> Finding:
        """Run the cases of the saboteur's row until one catches it."""
        entry = self.known[saboteur.kernel]
        row = Row(saboteur.kernel, saboteur.dtype, saboteur.mode)
        prepared = self._prepare(entry, row)
        if saboteur.mode == "gradient":
            return self._try_rule(saboteur, entry, prepared)
        if not is_installable(self.session, saboteur):
            return Finding(saboteur, "harmless", "the backend has no kernel of its own")
        witness = Witness(watching=True, signed_zero=entry.signed_zero)
        allowed = tolerances().of(entry, dt.of(saboteur.dtype))
        with install(self.session, saboteur, witness, allowed):
            for case in prepared.cases():
                failure = run_case(self.session, entry, row, case)
                if failure is not None:
                    return Finding(saboteur, "caught", f"{case.id}: {failure.message}")
            if saboteur.demanded:
                return Finding(saboteur, "escaped", "no case gives the occasion")
            if saboteur.kind in _WITHIN_BOUNDS and prepared.is_bounded():
                return Finding(saboteur, "harmless", "within the error allowed for sums")
            case_id = self._missed(entry, prepared, witness) if witness.struck else ""
            if case_id:
                return Finding(saboteur, "escaped", f"{case_id}: other results, and passed")
            shown = [
                probe for probe in prepared.probes() if run_case(self.session, entry, row, probe)
            ]
        # Probes that the clean kernel fails too do not count: the oracle has no answer there.
        for case in shown:
            if run_case(self.session, entry, row, case) is None:
                return Finding(saboteur, "escaped", f"{case.id} with special values would show it")
        return Finding(saboteur, "harmless", "makes no difference")

    def _missed(self, entry: CaseEntry, prepared: _Prepared, witness: Witness) -> str:
        """Return the case in which a wrong result passed; empty if there is none.

        It may have been wrong only for the values that run before those of a case, which are not
        judged.
        """
        for case in prepared.cases():
            if case.refused:
                continue
            operands = self.session.operands(case)
            witness.struck = False
            for _ in range(_CALLS):
                self.session.call(entry.spec, operands, case.attributes)
            if witness.struck:
                return case.id
        return ""

    def _try_rule(self, saboteur: Saboteur, entry: CaseEntry, prepared: _Prepared) -> Finding:
        witness = Witness(signed_zero=False)
        with install_rule(self.session, saboteur, witness):
            for case in prepared.planned:
                try:
                    judge_gradient(self.session, entry, case, prepared.slopes)
                except Exception as error:  # noqa: BLE001  # as in a run: it is a verdict
                    return Finding(saboteur, "caught", f"{case.id}: {error}".splitlines()[0])
        if witness.struck or saboteur.demanded:
            return Finding(saboteur, "escaped", "all gradients passed")
        return Finding(saboteur, "harmless", "makes no difference")

    def _prepare(self, entry: CaseEntry, row: Row) -> _Prepared:
        if row not in self._prepared:
            cases = planned(entry, row, cases_of(entry, row, self.seed)).cases
            self._prepared[row] = _Prepared(entry, cases)
        return self._prepared[row]


_WITHIN_BOUNDS = frozenset({"too many ulp", "subnormals flushed", "subnormals read as 0"})


def _worked_out(entry: CaseEntry, case: Case) -> Case:
    """Return the case with the oracle's answer in it."""
    if case.expected is not None or entry.oracle is None:
        return case
    answer = entry.answer(case)
    if isinstance(answer, Relation):
        return case
    return replace(case, expected=answer if isinstance(answer, tuple) else (answer,))


def _may_be_special(case: Case) -> bool:
    """Return whether the oracle answers, and the case is small enough for exact arithmetic."""
    sizes = [array.size for array in flat(case.inputs)]
    return case.expected is None and max(sizes, default=0) < _LARGEST


def _special(entry: CaseEntry, case: Case) -> Case:
    """Return a case with every special value of its dtypes in the place of ordinary ones."""

    def filled(array: Array) -> Array:
        if not array.size:
            return array
        edges = Corpus(dt.of(array.dtype)).edges()
        return np.resize(np.roll(edges, 3), array.shape)

    inputs = tuple(
        operand
        if name in entry.ordinary or entry.spec.accepted(name) == dt.INTEGER
        else mapped(filled, operand)
        for name, operand in zip(entry.spec.input_names, case.inputs, strict=True)
    )
    return replace(case, inputs=inputs, expected=None)
