"""Thousands of calls of one kernel: what is wrong now and then, or late, or left over by a few.

A row calls a kernel a few times for each case. Here a kernel is called over and over, on a few
small cases and on one of them with other numbers, in an order drawn from the kernel's name, so
that no count of calls keeps step with it. The first results are judged by the oracle. All others
must have their bits, types and descriptions, print nothing, and leave nothing behind.
"""

from __future__ import annotations

import math
import random
import time
import warnings
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import as_tensor
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import flat, mapped
from tensorplug_conformance.comparing.compare import bits
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import Row
from tensorplug_conformance.trying.claims import claimed
from tensorplug_conformance.trying.concurrency import disturbed
from tensorplug_conformance.trying.leftovers import MOST, PARTS, Leftovers
from tensorplug_conformance.trying.needs import lacks_dtype
from tensorplug_conformance.trying.printing import printed
from tensorplug_conformance.trying.rows import run_case
from tensorplug_conformance.variants.histories import flipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.plugin import DType, KernelSpec
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.session import Session


_SMALL: Final = 256  # elements of all inputs
_KINDS: Final = 3  # cases of other types beside the leading one
_SEEDS: Final = 3  # sets of numbers for the leading case
_FRESH: Final = 0.75  # of the calls get their inputs in new buffers
_QUOTED: Final = 100  # characters of a warning
_OTHERS: Final = 8  # one call in so many is of another case


@dataclass(frozen=True, slots=True)
class Soak:
    """How much is done.

    ``alone``: calls of a kernel one after another; ``beside``: calls in each of two threads at
    once. Together they are more than 3000. ``seconds``: no kernel takes much longer; a device on
    which calls take a millisecond gets fewer.
    """

    alone: int = 2000
    beside: int = 650
    seconds: float = 8.0


class Call:
    """One call with the results that it had at first."""

    def __init__(self, session: Session, spec: KernelSpec, case: Case) -> None:
        self.session = session
        self.spec = spec
        self.case = case
        self.operands = session.operands(case)
        outputs = session.call(spec, self.operands, case.attributes)
        backend = session.device.backend
        results = [session.read(output) for output in outputs]
        self._first = [(one.shape, one.dtype, bits(one)) for one in results]
        self._types = [backend.describe(output._buffer) for output in outputs]
        self._results = results

    def differs_from(self, other: Call) -> bool:
        """Return whether its results are others."""
        return self._first != other._first

    def fresh(self) -> list[Any]:
        """Return the inputs in new buffers."""
        with self.session.entered():
            return [mapped(lambda one: as_tensor(one.copy()), x) for x in self.case.inputs]

    def again(self, operands: Sequence[Any]) -> tuple[str, list[Any]]:
        """Return what is wrong with another call, empty if nothing is, and its buffers."""
        backend = self.session.device.backend
        outputs = self.session.call(self.spec, operands, self.case.attributes)
        buffers = [output._buffer for output in outputs]
        for at, (buffer, type_, first) in enumerate(
            zip(buffers, self._types, self._first, strict=True)
        ):
            array = backend.to_host(buffer)
            if (array.shape, array.dtype, bits(array)) != first or backend.describe(
                buffer
            ) != type_:
                return self._difference(at, array, backend.describe(buffer)), buffers
        return "", buffers

    def difference(self, other: Call) -> str:
        """Return how the first results of the same call elsewhere differ; empty if they do not."""
        if len(self._first) != len(other._first):
            return f"{len(other._first)} outputs instead of {len(self._first)}"
        for at, result in enumerate(other._results):
            if other._first[at] != self._first[at] or other._types[at] != self._types[at]:
                return self._difference(at, result, other._types[at])
        return ""

    def _difference(self, at: int, result: Array, described: Any) -> str:
        """Return how an output differs from the first call's."""
        meant = self._results[at]
        label = f"output {self.spec.output_names[at]!r}: " if len(self._results) > 1 else ""
        if result.shape != meant.shape or result.dtype != meant.dtype:
            return (
                f"{label}it is {result.dtype}{list(result.shape)}, the first call gave "
                f"{meant.dtype}{list(meant.shape)}"
            )
        if described != self._types[at]:
            return (
                f"{label}the backend describes it as {described}, the first result as "
                f"{self._types[at]}"
            )
        flat_found, flat_meant = result.reshape(-1), meant.reshape(-1)
        wrong = [
            index
            for index in range(meant.size)
            if bits(flat_found[index : index + 1]) != bits(flat_meant[index : index + 1])
        ]
        return (
            f"{label}{len(wrong)} of {meant.size} elements have other bits; first at "
            f"{wrong[0]}: got {flat_found[wrong[0]]!s}, the first call gave "
            f"{flat_meant[wrong[0]]!s}"
        )


def claimed_dtypes(session: Session, entry: CaseEntry) -> list[DType]:
    """Return the dtypes of an entry that the backend claims, float32 or the first one leading."""
    items = [
        dtype
        for dtype in entry.dtypes
        if dtype in session.device.backend.dtypes and claimed(session, entry.spec.name, dtype)
    ]
    return sorted(items, key=lambda dtype: dtype is not dt.float32)


def lead_of(session: Session, entry: CaseEntry, dtype: DType) -> Case | None:
    """Return the first small case that runs natively; None if there is none."""
    return next(_fitting(session, entry, dtype), None)


def _fitting(session: Session, entry: CaseEntry, dtype: DType) -> Iterator[Case]:
    return (case for case in own_cases(entry, dtype, 0) if _fits(session, entry, case))


def calls_of(session: Session, entry: CaseEntry, dtype: DType) -> list[Case]:
    """Return the leading small case that runs natively, with other seeds, then other cases.

    Nothing if there is none: the kernel has no small case, or declines them.
    """
    cases = list(islice(_fitting(session, entry, dtype), 1 + _KINDS))
    if not cases:
        return []
    # One element may give nothing, as in Where.
    cases.sort(key=lambda case: sum(array.size for array in flat(case.inputs)) == 1)
    lead = cases[0]
    same = [
        next(case for case in own_cases(entry, dtype, seed) if case.id == lead.id)
        for seed in range(1, _SEEDS)
    ]
    return [lead, *(case for case in same if case.types == lead.types), *cases[1:]]


def own_cases(entry: CaseEntry, dtype: DType, seed: int) -> Iterator[Case]:
    """Return the cases of an entry's own table."""
    return iter(entry.checked(entry.generate(Corpus(dtype, seed, entry.spec.name))))


def _fits(session: Session, entry: CaseEntry, case: Case) -> bool:
    """Return whether a case is small, succeeds, and runs natively."""
    arrays = flat(case.inputs)
    if case.refused or sum(one.size for one in arrays) > _SMALL:
        return False
    if not all(one.size for one in arrays):
        return False
    if lacks_dtype(session, entry.spec, case):
        return False
    _, outputs = entry.spec.resolve(case.types, case.attributes)
    if any(output.known and output.size > _SMALL for output in outputs):
        return False
    how, _ = session.how(entry.spec, case)
    return how == "native"


def soaked(
    session: Session, entry: CaseEntry, dtype: DType, soak: Soak | None = None
) -> tuple[str, int]:
    """Call a kernel thousands of times; return what went wrong, and how many calls there were.

    The first is empty if nothing went wrong. Without calls, no small case runs natively.
    """
    amount = soak or Soak()
    cases = calls_of(session, entry, dtype)
    if not cases:
        return "", 0
    row = Row(entry.spec.name, dtype.name, "native")
    for case in cases:
        failure = run_case(session, entry, row, case, aftermath=False)
        if failure is not None and not failure.tolerated:
            return f"case {case.id!r}: {failure.message}", 1
    calls = [Call(session, entry.spec, case) for case in cases]
    with warnings.catch_warnings(record=True) as warned, printed() as output:
        warnings.simplefilter("default")  # each is told once
        fault, made = _alone(session, calls, row, amount)
        if not fault and amount.beside and made >= amount.alone:
            lead = cases[0]
            turned = replace(lead, inputs=flipped(entry.spec, lead))
            others = (call.case for call in calls[1:] if call.differs_from(calls[0]))
            other = next((case for case in others if case.id == lead.id), turned)
            together = [session.operands(case) for case in (lead, other)]
            fault = disturbed(session, entry.spec, together, lead.attributes, calls=amount.beside)
            made += 2 * amount.beside
    if not fault and output.text:
        fault = f"it printed {output.text!r} in one of {made} calls"
    if not fault and warned:
        kind, said = warned[0].category.__name__, str(warned[0].message)
        fault = f"it warned in one of {made} calls: {kind}: {said[:_QUOTED]}"
    return fault, made


def _alone(session: Session, calls: Sequence[Call], row: Row, soak: Soak) -> tuple[str, int]:
    """Make the calls that come one after another; return the fault, and how many were made.

    What seems to be left over may be a cache that still fills: further calls decide.
    """
    series = _Series(session, calls, row)
    end = time.monotonic() + soak.seconds
    length = soak.alone // (PARTS + 1)
    for part in range(MOST):
        fault = series.part(length, end if part <= PARTS else math.inf)
        if fault or series.made < (part + 1) * length:
            return fault, series.made
        fault = series.leftovers.fault(length) if part >= PARTS else ""
        if part >= PARTS and not fault:
            break
    return fault, series.made


class _Series:
    """Calls one after another, in an order drawn from the name of the row."""

    def __init__(self, session: Session, calls: Sequence[Call], row: Row) -> None:
        self.lead = [call for call in calls if call.case.id == calls[0].case.id]
        self.others = calls[len(self.lead) :]
        self.order = random.Random(f"{row.kernel} {row.dtype}")
        self.leftovers = Leftovers(session.device.backend)
        self.made = 0

    def part(self, length: int, end: float) -> str:
        """Make so many calls, fewer if the time has come; return what is wrong with the last."""
        for _ in range(length):
            if time.monotonic() > end:
                return ""
            fault = self._one()
            self.made += 1
            if fault:
                return fault
        self.leftovers.count()
        return ""

    def _one(self) -> str:
        rare = self.others and not self.order.randrange(_OTHERS)
        call = self.order.choice(self.others if rare else self.lead)
        operands = call.fresh() if self.order.random() < _FRESH else call.operands
        try:
            fault, buffers = call.again(operands)
        except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
            fault, buffers = f"{type(error).__name__}: {error}", []
        inputs = [tensor._buffer for tensor in flat(operands)]
        # A kernel that changes nothing may return its input.
        new = [buffer for buffer in buffers if not any(buffer is one for one in inputs)]
        self.leftovers.watch("results", new)
        if operands is not call.operands:
            self.leftovers.watch("inputs", inputs)
        return f"call {self.made + 2}, case {call.case.id!r}: {fault}" if fault else ""
