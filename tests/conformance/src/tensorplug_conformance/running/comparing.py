"""The process that compares: it knows cases and oracles, and never imports a plugin.

A worker tells what the calls of a row gave (``trying.comparer``). What it tells is read as data,
whatever the plugin has done to the worker.
"""

from __future__ import annotations

import random
import signal
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import MARK, Presentation
from tensorplug_conformance.denominator import Row, cases_of, entries, is_told
from tensorplug_conformance.running.peer import Requests
from tensorplug_conformance.trying import program
from tensorplug_conformance.trying.comparer import Comparer, replayed
from tensorplug_conformance.trying.references import References
from tensorplug_conformance.trying.rows import KEPT, lenient, planned, ranks, status_of, totals
from tensorplug_conformance.verdicts import PASSED, Failure, RowVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.verdicts import Item

_PLANNED: Final = 8  # of so many rows, one is asked whether each presentation was told
_DAMAGED: Final = "it damaged what was told of its results"
_WRONG: Final = (
    TensorplugError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    OSError,
    MemoryError,
)


@cache
def known() -> Mapping[str, CaseEntry]:
    """Return the suite's own entries: those of extensions are imported from plugins."""
    return entries()


def is_outside(item: Item) -> bool:
    """Return whether the results of an item are compared in another process than the plugin's."""
    return item[0] == "row" and item[3] != "gradient" and item[1] in known()


class Completion:
    """Completes verdicts of one run; neighbours share expected outputs."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._references = References()
        self._chance = random.SystemRandom()

    def completed(
        self, item: Item, verdict: dict[str, Any], zeros: Sequence[str], path: Path
    ) -> dict[str, Any]:
        """Return a row's verdict with what was told in a file, which is removed.

        ``zeros``: dtypes whose subnormal numbers the device flushes, as it says.
        """
        row = Row(*item[1:4])
        failures = [Failure(**failure) for failure in verdict["failures"]]
        own = RowVerdict(**{**verdict, "row": row, "failures": failures})
        try:
            with path.open("rb") as file:
                fault = self._complete(own, file, frozenset(map(dt.of, zeros)))
        except _WRONG as error:
            fault = f"{_DAMAGED}: {type(error).__name__}: {error}"
        finally:
            path.unlink(missing_ok=True)
        if fault:
            own.status = own.vendor = "fail"
            own.reason = fault
        return asdict(own)

    def _complete(self, verdict: RowVerdict, file: Any, zeros: frozenset[Any]) -> str:
        """Add to a verdict what is wrong with what was told; return what was not told."""
        row = verdict.row
        entry = known()[row.kernel]
        cases = cases_of(entry, row, self._seed)
        by_id = {case.id: case for case in cases}
        right = partial(self._references.of, entry, row)
        calls: dict[str, list[str]] = {}
        wrong: dict[str, Failure] = {}
        while (told := program.receive(file)) is not None:
            case = by_id[told[0]["case"]]
            if case.id in calls:
                return f"{_DAMAGED}: case {case.id!r} twice"
            comparer = Comparer(entry, row, case, right, zeros)
            fault, how, calls[case.id] = replayed(comparer, *told)
            if fault:
                wrong[case.id] = Failure.of(case, fault, how)
            elif comparer.tolerated and case.id not in verdict.failed:
                wrong[case.id] = Failure.of(case, comparer.tolerated, tolerated=True)
            elif case.id not in verdict.failed:
                verdict.ulp = max(verdict.ulp, comparer.worst)
        if wrong:
            _count(verdict, cases, wrong)
            plan = planned(entry, row, cases)
            done = [(name, Presentation.of(how)) for name in calls for how in calls[name] if how]
            verdict.coverage = plan.coverage(done) | ranks(plan.cases, verdict.failed)
            verdict.pairs = totals(verdict.coverage)
        if verdict.status not in PASSED:
            return ""
        # What came is right. Has all of it come?
        judged = sum(
            bool(calls.get(case.id)) or case.refused or not is_told(case) for case in cases
        )
        if judged < verdict.passed:
            return f"{verdict.passed} cases are said to be right, but {judged} were told"
        if not self._chance.randrange(_PLANNED):
            for case in planned(entry, row, cases).cases:
                missing = {one.id for one in case.presentations} - set(calls.get(case.id, ()))
                if calls.get(case.id) and missing and not (case.light or case.refused):
                    return f"{_DAMAGED}: no result of {case.id}{MARK}{min(missing)}"
        return ""


def _count(verdict: RowVerdict, cases: Sequence[Case], wrong: Mapping[str, Failure]) -> None:
    """Add the cases that are wrong to those that the worker found."""
    new = wrong.keys() - set(verdict.failed)
    kept = {failure.case.partition(MARK)[0]: failure for failure in verdict.failures}
    kept |= wrong  # results come before what the worker found with them
    tolerated = {name for name in new if wrong[name].tolerated}
    tolerated |= set(verdict.tolerated) - wrong.keys()
    order = {case.id: at for at, case in enumerate(cases)}  # examples, which are none, come last
    verdict.passed -= len(new)
    verdict.failed = sorted({*verdict.failed, *new}, key=lambda name: order.get(name, len(order)))
    verdict.tolerated = [name for name in verdict.failed if name in tolerated]
    verdict.failures = [kept[name] for name in verdict.failed if name in kept][:KEPT]
    refusals = sum(case.refused for case in cases)
    verdict.vendor = verdict.status = status_of(verdict.row, verdict, refusals)
    if verdict.tolerated:
        verdict.vendor = status_of(verdict.row, lenient(verdict), refusals)


def main(seed: str) -> None:
    """Answer requests until the input ends; the terminal's Ctrl-C is for the supervisor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, completion = Requests(), Completion(int(seed))
    while True:
        try:
            item, verdict, zeros, path = requests.receive()
        except EOFError:
            return
        requests.answer(completion.completed(item, verdict, zeros, Path(path)))
