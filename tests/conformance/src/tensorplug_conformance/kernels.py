"""Levels 2 and 3: one row of the report, case by case."""

from __future__ import annotations

import time
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import (
    GradientNotFoundError,
    KernelNotFoundError,
    KernelRefusedError,
    TensorType,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Relation, flat
from tensorplug_conformance.claims import claimed, in_vain
from tensorplug_conformance.compare import judge, judge_periods, same_bits
from tensorplug_conformance.concurrency import disturbed
from tensorplug_conformance.denominator import cases_of
from tensorplug_conformance.gradients import WrongGradientError, judge_gradient
from tensorplug_conformance.leaks import left_behind, shows_leaks
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.references import References, worked_out
from tensorplug_conformance.tolerances import tolerances
from tensorplug_conformance.verdicts import Failure, RowVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import KernelSpec, Tensor
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.denominator import Row
    from tensorplug_conformance.references import Right
    from tensorplug_conformance.session import Session
    from tensorplug_conformance.verdicts import Status

__all__ = ["run_case", "run_row"]

_QUOTED = 100  # characters of what a kernel prints
KEPT = 5  # failures per row that are described; all of them are counted


class WrongResultError(Exception):
    """A case went wrong; the text says how."""


class DeclinedError(Exception):
    """The backend's kernel declined this call, and the row asks for that kernel."""


def run_row(
    session: Session, entry: CaseEntry, row: Row, seed: int, references: References | None = None
) -> RowVerdict:
    """Return the verdict on all cases of ``row``; errors of the backend are part of it.

    ``references`` keeps expected values for the next row of the same kernel and dtype.
    """
    started = time.perf_counter()
    cases = cases_of(entry, row, seed)
    verdict = RowVerdict(row, "fail", len(cases))
    dtype = dt.of(row.dtype)
    if dtype not in session.device.backend.dtypes:
        verdict.status, verdict.unsupported = "unsupported dtype", len(cases)
        return verdict
    optional = row.mode == "native" and row.kernel not in PRIMITIVES
    if optional and not claimed(session, row.kernel, dtype):
        verdict.status = "not claimed"
        return verdict
    watched = next((case.id for case in cases if shows_leaks(case)), None)
    right = partial((references or References()).of, entry, row)
    for case in cases:
        last = case.id == watched
        failure = _run_case(session, entry, row, case, verdict, right, aftermath=last)
        if failure is not None:
            verdict.failed.append(case.id)
            if len(verdict.failures) < KEPT:
                verdict.failures.append(failure)
    verdict.status = _status(row, verdict, sum(isinstance(case.expected, type) for case in cases))
    if verdict.status == "not claimed":
        empty = in_vain(session, entry, row, seed)
        if empty:
            verdict.status, verdict.reason = "fail", f"{empty}: {verdict.reason}"
    verdict.seconds = time.perf_counter() - started
    return verdict


def run_case(
    session: Session, entry: CaseEntry, row: Row, case: Case, *, aftermath: bool = True
) -> Failure | None:
    """Return the failure of one case, or None if it passes or the backend lacks its dtypes.

    ``aftermath``: also check what the calls leave behind, which takes a while.
    """
    verdict = RowVerdict(row, "fail", 1)
    right = partial(worked_out, entry)
    watched = aftermath and shows_leaks(case)
    return _run_case(session, entry, row, case, verdict, right, aftermath=watched)


def _run_case(
    session: Session,
    entry: CaseEntry,
    row: Row,
    case: Case,
    verdict: RowVerdict,
    right: Callable[[Case], Right],
    *,
    aftermath: bool,
) -> Failure | None:
    """Run one case, count it in ``verdict``, and return its failure, if it is one."""
    try:
        if _lacks_dtype(session, entry.spec, case):
            verdict.unsupported += 1
            return None
        if row.mode == "gradient":
            worst = judge_gradient(session, entry, case)
        else:
            trial = _Trial(session, entry, row, case, right, verdict)
            with redirect_stdout(StringIO()) as printed:
                worst = trial.run()
            if printed.getvalue():
                raise WrongResultError(f"it printed {printed.getvalue()[:_QUOTED]!r}")
            fault = _afterwards(trial) if aftermath else ""
            if fault:
                raise WrongResultError(fault)  # counted with all others below
    except DeclinedError as declined:
        verdict.declined += 1
        verdict.reason = verdict.reason or str(declined)
        return None
    except (KernelNotFoundError, KernelRefusedError, GradientNotFoundError) as missing:
        verdict.reason = verdict.reason or str(missing)
        return Failure.of(case, f"missing: {missing}")
    except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
        name = (
            ""
            if isinstance(error, WrongResultError | WrongGradientError)
            else f"{type(error).__name__}: "
        )
        return Failure.of(case, f"{name}{error}")
    verdict.passed += 1
    verdict.ulp = max(verdict.ulp, worst)
    return None


def _afterwards(trial: _Trial) -> str:
    """Return what goes wrong when a correct case is called many times; empty if nothing does."""
    session, case = trial.session, trial.case
    several = [session.operands(case), trial.decoys()]
    return left_behind(session, trial.spec, case) or disturbed(
        session, trial.spec, several, case.attributes
    )


def _status(row: Row, verdict: RowVerdict, refusals: int) -> Status:
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


def _lacks_dtype(session: Session, spec: KernelSpec, case: Case) -> bool:
    """Return whether the case needs a dtype that the backend does not declare."""
    needed = {dt.of(array.dtype) for array in flat(case.inputs)}
    if not isinstance(case.expected, type):
        needed.update(output.dtype for output in _outputs(spec, case))
    return not needed <= session.device.backend.dtypes


def _outputs(spec: KernelSpec, case: Case) -> tuple[TensorType, ...]:
    return spec.resolve(case.types, case.attributes)[1]


def _same(array: Array) -> Array:
    return array


def _flipped(array: Array) -> Array:
    return np.flip(array) if array.ndim else array


class _Trial:
    """One case on one session: three calls, and all that must hold for them."""

    def __init__(
        self,
        session: Session,
        entry: CaseEntry,
        row: Row,
        case: Case,
        right: Callable[[Case], Right],
        verdict: RowVerdict,
    ) -> None:
        self.verdict = verdict
        self.right = right
        self.session = session
        self.entry = entry
        self.spec = entry.spec
        self.row = row
        self.case = case

    def run(self) -> float:
        """Return the worst error in ulp.

        Raises:
            WrongResultError: what is wrong.
            DeclinedError, KernelNotFoundError: the call did not run the way the row asks for.

        """
        case, session = self.case, self.session
        operands = session.operands(case)
        if isinstance(case.expected, type):
            return self._refused(operands, case.expected)
        self._check_how()
        # Other values of the same types run first: a buffer or a result kept from that call
        # and handed out again shows in the next one, and the next one must not disturb it.
        decoys = self.decoys()
        earlier = session.call(self.spec, decoys, case.attributes)
        kept = [session.read(tensor) for tensor in earlier]
        outputs = session.call(self.spec, operands, case.attributes)
        results = [session.read(output) for output in outputs]
        worst = self._judge(outputs, results)
        again = session.call(self.spec, operands, case.attributes)
        for first, second in zip(results, map(session.read, again), strict=True):
            if not same_bits(first, second):
                raise WrongResultError("the same call gave other bits the second time")
        for before, tensor in zip(kept, earlier, strict=True):
            if not same_bits(before, session.read(tensor)):
                raise WrongResultError(
                    "a later call changed the result of an earlier one (aliased output)"
                )
        for before, tensor in zip(results, outputs, strict=True):
            if not same_bits(before, session.read(tensor)):
                raise WrongResultError("a later call changed this result (aliased output)")
        self._check_inputs(operands)
        return worst

    def _refused(self, operands: Sequence[Any], expected: type[Exception]) -> float:
        try:
            self.session.call(self.spec, operands, self.case.attributes)
        except expected:
            return 0.0
        raise WrongResultError(f"no {expected.__name__} was raised")

    def _check_how(self) -> None:
        how, reasons = self.session.how(self.spec, self.case)
        self.verdict.widened |= how == "widened"
        primitive = self.row.kernel in PRIMITIVES
        # What a widened call runs is a row of its own, in the dtype that it is computed in.
        others = ("widened", "host") if self.row.mode == "decomposed" else ("widened",) * primitive
        if how in (self.row.mode, *others):
            return
        if how == "fallback":
            raise WrongResultError(f"it ran on another backend ({reasons})")
        if self.row.mode == "native" and primitive:
            raise KernelNotFoundError(f"a primitive kernel must be native ({reasons})")
        if self.row.mode == "native" and (how == "widened" or "declined" in reasons):
            raise DeclinedError(reasons)
        raise WrongResultError(f"it ran {how}, not {self.row.mode} ({reasons})")

    def decoys(self) -> list[Any]:
        """Return inputs of the same types with other values; indices stay as they are."""
        result: list[Any] = []
        for name, operand in zip(self.spec.input_names, self.case.inputs, strict=True):
            changed = _same if self.spec.accepted(name) == dt.INTEGER else _flipped
            if operand is None:
                result.append(None)
            elif isinstance(operand, list):
                result.append([self.session.upload(changed(array)) for array in operand])
            else:
                result.append(self.session.upload(changed(operand)))
        return result

    def _judge(self, outputs: Sequence[Tensor], results: Sequence[Array]) -> float:
        types = _outputs(self.spec, self.case)
        references = self.right(self.case)
        if isinstance(references, Relation):
            return self._judge_relation(references, types, outputs, results)
        ulp = tolerances().of(self.entry, dt.of(self.row.dtype))
        worst = 0.0
        describe = self.session.device.backend.describe
        labels = self.spec.output_names
        for at, (tensor, result, type_, reference) in enumerate(
            zip(outputs, results, types, references, strict=True)
        ):
            label = f"output {labels[at]!r}: " if len(labels) > 1 else ""
            real = describe(tensor._buffer)  # what the backend says of it
            if not type_.admits(real):
                raise WrongResultError(
                    f"{label}the backend describes it as {real}, must be {type_}"
                )
            compare = judge_periods if self.case.period else judge
            found = compare(result, type_, reference, ulp=ulp, signed_zero=self.entry.signed_zero)
            if found.fault:
                raise WrongResultError(label + found.fault)
            worst = max(worst, found.ulp)
        return worst

    def _judge_relation(
        self,
        relation: Relation,
        types: Sequence[TensorType],
        outputs: Sequence[Tensor],
        results: Sequence[Array],
    ) -> float:
        """Judge the types of the outputs, then the relation between them."""
        describe = self.session.device.backend.describe
        names = self.spec.output_names
        for name, tensor, result, type_ in zip(names, outputs, results, types, strict=True):
            real = describe(tensor._buffer)
            found = TensorType(dt.of(result.dtype), result.shape)
            if not (type_.admits(real) and type_.admits(found)):
                raise WrongResultError(
                    f"output {name!r}: it is {found}, the backend describes it as {real}, must "
                    f"be {type_}"
                )
        for name, value, reference in relation.check(*results):
            if value.shape != reference.value.shape:
                raise ValueError(f"{name}: shapes {value.shape} and {reference.value.shape}")
            error = np.atleast_1d(np.abs(value - reference.value))
            allowed = np.broadcast_to(reference.bound, value.shape)
            if not bool(np.all(error <= allowed)):  # a NaN is not
                raise WrongResultError(
                    f"{name}: off by {float(np.max(error, initial=0)):.3g}, allowed "
                    f"{float(np.max(allowed, initial=0)):.3g}"
                )
        return 0.0

    def _check_inputs(self, operands: Sequence[Any]) -> None:
        arrays = flat(self.case.inputs)
        for at, (array, tensor) in enumerate(zip(arrays, flat(operands), strict=True)):
            if not same_bits(np.asarray(array), self.session.read(tensor)):
                raise WrongResultError(f"the kernel changed its input {at}")
