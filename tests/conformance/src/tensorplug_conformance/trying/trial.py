"""One case on one session: its first calls, its presentations, and what must hold for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import KernelNotFoundError, TensorType, as_tensor
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import MARK, Presentation, flat, mapped, refilled
from tensorplug_conformance.comparing.vendor import flushed
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.trying.comparer import Comparer, Telling
from tensorplug_conformance.trying.notes import unnoted
from tensorplug_conformance.variants.histories import flipped, is_index, previous

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from tensorplug.plugin import KernelSpec, Tensor
    from tensorplug_conformance.case import Array, Case, Operand
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.denominator import Row
    from tensorplug_conformance.session import Session
    from tensorplug_conformance.trying.references import Right
    from tensorplug_conformance.verdicts import RowVerdict

from tensorplug_conformance.trying.faults import DeclinedError, PresentationError, WrongResultError

_CHAINED: Final = 4096  # elements


def outputs_of(spec: KernelSpec, case: Case) -> tuple[TensorType, ...]:
    """Return the types of the outputs of a case."""
    return spec.resolve(case.types, case.attributes)[1]


class Trial:
    """One case on one session: several calls, and all that must hold for them.

    With ``told``, a file, nothing is compared here: what must be goes there.
    """

    def __init__(
        self,
        session: Session,
        entry: CaseEntry,
        row: Row,
        case: Case,
        right: Callable[[Case], Right],
        verdict: RowVerdict,
        reached: Callable[[str], None] = unnoted,
        told: BinaryIO | None = None,
    ) -> None:
        self.verdict = verdict
        self.reached = reached
        self.comparer: Comparer | Telling
        if told is None:
            self.comparer = Comparer(entry, row, case, right, flushed(session.device))
        else:
            self.comparer = Telling(told, case.id)
        self.session = session
        self.entry = entry
        self.spec = entry.spec
        self.row = row
        self.case = case
        self.presented: list[Presentation] = []
        self._laid_out: dict[tuple[str, str], Any] = {}

    def run(self) -> float:
        """Return the worst error in ulp.

        Raises:
            WrongResultError: what is wrong.
            PresentationError: the same, in a presentation after the first calls.
            DeclinedError, KernelNotFoundError: the call did not run the way the row asks for.

        """
        try:
            return self._run()
        finally:
            self.comparer.close()

    def _run(self) -> float:
        case, session = self.case, self.session
        if case.light:
            return self._once()
        operands = session.operands(case)
        if case.refused:
            return self._refused(operands)
        self._check_how()
        prelude = self._prelude(operands)
        # Other values of the same types run first: a buffer or a result kept from that call
        # and handed out again shows in the next one, and the next one must not disturb it.
        decoys = self.decoys()
        earlier = session.call(self.spec, decoys, case.attributes)
        kept = [session.read(tensor) for tensor in earlier]
        outputs = session.call(self.spec, operands, case.attributes)
        results = self._judged(outputs)
        again = session.call(self.spec, operands, case.attributes)
        self._check_unchanged(results, again, "the same call gave other bits the second time")
        changed = "a later call changed the result of an earlier one (aliased output)"
        self._check_unchanged(kept, earlier, changed)
        self._check_unchanged(
            results, outputs, "a later call changed this result (aliased output)"
        )
        self._chained(operands, outputs, results)
        if prelude is not None:
            self.presented.append(Presentation(before=case.prelude))
        for presentation in case.presentations:
            self.reached(f"{case.id}{MARK}{presentation.id}")
            self.comparer.present(presentation.id)
            try:
                self._present(presentation)
            except Exception as error:
                raise PresentationError(presentation) from error
            self.presented.append(presentation)
        self.comparer.present("")
        if prelude is not None:
            self._recall(*prelude)
        rotated = "a much later call changed a result (memory in rotation)"
        self._check_unchanged((*kept, *results), (*earlier, *outputs), rotated)
        self._check_inputs(operands)
        return self.comparer.worst

    def _once(self) -> float:
        """Make the call, and judge it."""
        session = self.session
        self._check_how()
        with session.entered():
            operands = [mapped(as_tensor, operand) for operand in self.case.inputs]
        self._judged(session.call(self.spec, operands, self.case.attributes))
        return self.comparer.worst

    def _check_unchanged(
        self, kept: Sequence[Array], tensors: Sequence[Tensor], wrong: str
    ) -> None:
        self.comparer.same(kept, list(map(self.session.read, tensors)), wrong)

    def _refused(self, operands: Sequence[Any]) -> float:
        expected = self.case.refusal or self.case.expected
        assert isinstance(expected, type)
        try:
            outputs = self.session.call(self.spec, operands, self.case.attributes)
            results = list(map(self.session.read, outputs))  # one that computes later raises here
        except expected:
            self.session.settle()
            return 0.0
        if self.case.refusal is None:
            raise WrongResultError(f"no {expected.__name__} was raised")
        self.comparer.result(results, self._described(outputs))
        return self.comparer.worst

    def _check_how(self) -> None:
        how, reasons = self.session.how(self.spec, self.case)
        self.verdict.widened |= how == "widened"
        primitive = self.row.kernel in PRIMITIVES
        # What a widened call runs is a row of its own, in the dtype that it is computed in.
        others = ("widened", "host") if self.row.mode == "decomposed" else ("widened",) * primitive
        if how in (self.row.mode, *others):
            return
        if self.row.mode == "native" and primitive:
            raise KernelNotFoundError(f"a primitive kernel must be native ({reasons})")
        if self.row.mode == "native" and (how == "widened" or "declined" in reasons):
            raise DeclinedError(reasons)
        if how == "fallback":
            raise WrongResultError(f"it ran on another backend ({reasons})")
        raise WrongResultError(f"it ran {how}, not {self.row.mode} ({reasons})")

    def decoys(self) -> list[Any]:
        """Return inputs of the same types with other values; indices stay as they are."""
        return [mapped(self.session.upload, one) for one in flipped(self.spec, self.case)]

    # Calls before.

    def _before(
        self, before: str, placed: Sequence[Any] | None = None
    ) -> tuple[list[Any], list[Array]] | None:
        """Make the call before; return its outputs and what they hold, None if there is none.

        Inputs that are the same as those of the case are the tensors of ``placed``. The inputs may
        be outside the kernel's domain: an exception of tensorplug is right, too.
        """
        call = previous(self.spec, self.case, before)
        if call is None:
            return None
        inputs, attributes = call
        operands = [
            placed[at]
            if placed is not None and new is self.case.inputs[at]
            else mapped(self.session.upload, new)
            for at, new in enumerate(inputs)
        ]
        return self.session.attempt(self.spec, operands, attributes)

    def _prelude(self, operands: Sequence[Any]) -> tuple[list[Any], list[Array]] | None:
        """Make the call that comes before the first; return its inputs and what it returned."""
        for before in self.case.preludes:
            self._before(before, operands)
        if not self.case.prelude:
            return None
        earlier = self._before(self.case.prelude, operands)
        return None if earlier is None else (list(operands), earlier[1])

    def _recall(self, operands: Sequence[Any], results: Sequence[Array]) -> None:
        """Make the call of the prelude once more, after all the others."""
        repeated = self._before(self.case.prelude, operands)
        wrong = f"the call before ({self.case.prelude}) gave other bits when repeated later"
        if repeated is None:
            raise WrongResultError(wrong)
        self.comparer.same(results, repeated[1], wrong)

    def judge(self, results: Sequence[Array]) -> None:
        """Judge results that another process computed for the case.

        Raises:
            WrongResultError: what is wrong.

        """
        self.comparer.result(results, [TensorType(dt.of(x.dtype), x.shape) for x in results])

    def _described(self, outputs: Sequence[Tensor]) -> list[TensorType]:
        """Return what the backend says of outputs."""
        describe = self.session.device.backend.describe
        return [describe(tensor._buffer) for tensor in outputs]

    def _chained(
        self, operands: Sequence[Any], outputs: Sequence[Tensor], results: Sequence[Array]
    ) -> None:
        """Use the result as an input: it must be as good as new memory with its values.

        It takes the place of the first input of its type. Where sums are rounded may depend on
        the memory, so bits do not count.
        """
        if not outputs:
            return
        result = results[0]
        place = self._place_like(result)
        if place is None:
            return
        items = []
        for tensor in (outputs[0], self.session.upload(result)):
            inputs = [*operands[:place], tensor, *operands[place + 1 :]]
            called = self.session.attempt(self.spec, inputs, self.case.attributes)
            if called is None:
                return  # the values are outside of the kernel's domain
            items.append(called[1])
        self.comparer.near(items[0], items[1], "it is wrong for its own result as input")

    def _place_like(self, result: Array) -> int | None:
        """Return the place of the first input that a result can take; None if there is none."""
        if result.size > _CHAINED or result.dtype.kind not in "biufc":
            return None
        names = self.spec.input_names
        for place, (name, operand) in enumerate(zip(names, self.case.inputs, strict=True)):
            if (
                isinstance(operand, np.ndarray)
                and (operand.dtype, operand.shape) == (result.dtype, result.shape)
                and not is_index(self.spec, name)
            ):
                return place
        return None

    # Presentations.

    def _present(self, presentation: Presentation) -> None:
        """Make the call in one of its presentations, and judge it."""
        earlier = None
        if presentation.before == "freed":
            # Inputs and results are gone when this call's inputs take their memory.
            self._before(presentation.before)
            placed = self._placed(presentation, fresh=True)
        else:
            placed = self._placed(presentation)
            earlier = self._before(presentation.before, placed)
        self._judged(self.session.call(self.spec, placed, self.case.attributes))
        if earlier is not None:
            tensors, kept = earlier
            self._check_unchanged(kept, tensors, "it changed the result of the call before")

    def _judged(self, outputs: Sequence[Tensor]) -> list[Array]:
        """Return the results, which are right."""
        results = [self.session.read(output) for output in outputs]
        self.comparer.result(results, self._described(outputs))
        return results

    def _placed(self, presentation: Presentation, *, fresh: bool = False) -> list[Any]:
        """Return the inputs as a presentation lays them out."""
        case, session = self.case, self.session
        layouts = dict(presentation.layouts)
        names = self.spec.input_names
        known = dict(zip(names, case.inputs, strict=True))
        if presentation.buffers in ("one tensor", "views", "overlapping"):
            first = case.alike[0]
            alike = [known[name] for name in case.alike]
            layout = layouts.get(first, "dense")
            made = session.sharing(flat(alike), presentation.buffers, layout)
            shared = dict(zip(case.alike, refilled(alike, made), strict=True))
            return [
                shared[name] if name in shared else self._lay(name, operand, "dense", fresh=fresh)
                for name, operand in known.items()
            ]
        if presentation.buffers == "packed":
            return session.packed(case.inputs)
        return [
            self._lay(name, operand, layouts.get(name, "dense"), fresh=fresh)
            for name, operand in known.items()
        ]

    def _lay(self, name: str, operand: Operand, layout: Any, *, fresh: bool) -> Any:
        """Return an input in a layout: the same tensor every time, unless it must be fresh."""
        if operand is None:
            return None
        key = name, layout
        if fresh or key not in self._laid_out:
            upload = self.session.upload
            several = isinstance(operand, list)
            made = [upload(array, layout) for array in flat([operand])]
            if fresh:
                return made if several else made[0]
            self._laid_out[key] = made if several else made[0]
        return self._laid_out[key]

    def _check_inputs(self, operands: Sequence[Any]) -> None:
        used = [*zip(self.spec.input_names, operands, strict=True)]
        used += [(name, tensors) for (name, _), tensors in self._laid_out.items()]
        for name, tensors in used:
            self.comparer.unchanged(name, list(map(self.session.read, flat([tensors]))))
