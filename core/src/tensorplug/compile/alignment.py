"""Aligning a trace at exact sizes with a trace of the same function at padded sizes.

Both traces must make the same calls, in the same order. Each pair of calls is judged by a rule
(``compile.padding``), or by the decompositions of both. The result is a program at padded sizes:
with masks where padding would take part, and with decompositions in the place of calls inside
which it would. The program has two more kinds of inputs, whose data depend on the exact size:
masks, and constants that differ between the traces, such as the divisor of a mean.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tensorplug.compile.decompositions import trace_decomposition
from tensorplug.compile.nested import NestedPlan
from tensorplug.compile.padding import Case, RefusedError, judge, same_call
from tensorplug.compile.padding_rules import RULES
from tensorplug.compile.passes import eliminate_dead_calls
from tensorplug.compile.tracing import Call, Trace
from tensorplug.compile.values import Constant, Value
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.operands import flatten
from tensorplug.ops import elementwise, movement

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy as np

    from tensorplug.compile.decompositions import TracedDecomposition
    from tensorplug.compile.padding import Mask
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan

__all__ = ["Alignment", "Masked", "Result"]

_DEEPEST = 8  # decompositions inside one another

Operand: TypeAlias = Value | Constant


class Masked(NamedTuple):
    """A call at padded sizes, with the operands of the program; ``masks`` of some of them.

    ``inputs``: as those of a ``Call``. ``masks``: each with the position of its mask among those
    of the program.
    """

    call: Call
    inputs: list[Any]
    outputs: list[Value]
    masks: list[tuple[Mask, int]]


class Result(NamedTuple):
    """One result of the function: an operand of the program, or data that it does not compute."""

    operand: Value | None
    held: Constant | None


class Alignment:
    """A trace at exact sizes as a program at padded sizes.

    ``calls``: of the program. ``masks``: the exact and the padded size of each mask. ``varying``:
    the inputs for constants that differ, with their data at the exact sizes. ``log``: what was
    decided; with equal logs, two traces at exact sizes give the same program.
    ``known``: decompositions at padded sizes by plan, which later alignments use again.

    Raises:
        RefusedError: the traces differ, or a call does not allow padding.

    """

    def __init__(self, engine: Engine, known: dict[Plan, TracedDecomposition | None]) -> None:
        self.calls: list[Masked] = []
        self.masks: list[tuple[int, int]] = []
        self.varying: dict[Value, Constant] = {}
        self.log: list[Hashable] = []
        self._engine = engine
        self._known = known
        self._exact: dict[Value, Operand] = {}  # the operand of the program for each value
        self._padded: dict[Value, Operand] = {}
        self._constants: dict[tuple[Constant, Constant], Operand] = {}
        self._zeros: frozenset[Operand] = frozenset()
        self._interventions = 0

    def enter(
        self, exact: Sequence[Value], padded: Sequence[Value], arguments: int
    ) -> list[Value]:
        """Make inputs of both traces known; return them as inputs of the program.

        The first of them, as many as ``arguments``, are padded with zeros.
        """
        others = [value.placement for value in exact[arguments:]]
        if others != [value.placement for value in padded[arguments:]]:
            raise RefusedError("the function reads other inputs at another size")
        for mine, other in zip(exact, padded, strict=True):
            self._exact[mine] = self._padded[other] = other
        self._zeros = frozenset(padded[:arguments])
        return list(padded)

    def walk(
        self, exact: Sequence[Call], padded: Sequence[Call], *, new: bool = False, depth: int = 0
    ) -> None:
        """Add the calls of both traces to the program.

        ``new``: whether the outputs of ``padded`` get new values.
        """
        for mine, other in zip(exact, padded, strict=False):
            self._add(mine, other, new, depth)
        if len(exact) != len(padded):
            raise RefusedError(
                f"the function calls {len(exact)} kernels at one size, and {len(padded)} at "
                "another"
            )

    def result(self, exact: Operand, padded: Operand) -> Result:
        """Return the result of the program for a result of both traces."""
        if isinstance(exact, Constant):
            self.log.append("held")
            return Result(None, exact)
        operand = self._pair(exact, padded)
        assert isinstance(operand, Value), "a value is no constant"
        return Result(operand, None)

    # Pairs of calls -----------------------------------------------------------------------

    def _add(self, exact: Call, padded: Call, new: bool, depth: int) -> None:  # noqa: FBT001
        mine, other = exact.plan, padded.plan
        if mine.spec is not other.spec or len(mine.outputs) != len(other.outputs):
            raise RefusedError(
                f"the function calls {mine.spec.name}{_at(exact)} at one size, and "
                f"{other.spec.name}{_at(padded)} at another"
            )
        operands = [
            self._pair(a, b) for a, b in zip(exact.operands(), padded.operands(), strict=True)
        ]
        if isinstance(mine, NestedPlan):
            raise RefusedError(f"{mine.spec.name}{_at(exact)} is a call with a program inside")
        masks: list[Mask] | None = []
        if not same_call(mine, other):
            try:
                known = [self._known_data(each) for each in operands]
                masks = judge(Case(mine, other, known), RULES)
            except RefusedError as error:
                raise RefusedError(f"{mine.describe()}{_at(exact)}: {error}") from None
        if masks is None:
            self._decompose(exact, padded, operands, new, depth)
        else:
            self._emit(exact, padded, operands, masks, new)

    def _emit(
        self,
        exact: Call,
        padded: Call,
        operands: list[Operand],
        masks: Sequence[Mask],
        new: bool,  # noqa: FBT001
    ) -> None:
        placed = []
        for mask in masks:
            if operands[mask.input] in self._zeros and repr(mask.neutral) == "0":
                continue
            mine = flatten(exact.plan.inputs)[mask.input].shape[mask.axis]
            other = flatten(padded.plan.inputs)[mask.input].shape[mask.axis]
            if (mine, other) not in self.masks:
                self.masks.append((mine, other))
            placed.append((mask, self.masks.index((mine, other))))
        self._interventions += len(placed)
        self.log.append(tuple((*mask[:2], repr(mask.neutral), at) for mask, at in placed))
        outputs = [Value(output.placement) for output in padded.outputs] if new else padded.outputs
        self._know(exact.outputs, padded.outputs, outputs)
        self.calls.append(Masked(padded, _like(padded.inputs, iter(operands)), outputs, placed))

    def _know(
        self, exact: Sequence[Value], padded: Sequence[Value], operands: Sequence[Operand]
    ) -> None:
        for mine, other, operand in zip(exact, padded, operands, strict=True):
            self._exact[mine] = self._padded[other] = operand

    def _decompose(
        self,
        exact: Call,
        padded: Call,
        operands: list[Operand],
        new: bool,  # noqa: FBT001
        depth: int,
    ) -> None:
        """Judge a call by its decomposition; put that in its place if padding takes part in it."""
        what = f"{exact.plan.describe()}{_at(exact)}"
        mine = trace_decomposition(self._engine, exact.plan) if depth < _DEEPEST else None
        if padded.plan not in self._known:
            self._known[padded.plan] = trace_decomposition(self._engine, padded.plan)
        other = self._known[padded.plan]
        if mine is None or other is None:
            raise RefusedError(f"{what}: it has no rule for padding, and no decomposition")
        calls, log, before = len(self.calls), len(self.log), self._interventions
        self._know(mine.inputs, other.inputs, operands)
        try:
            self.walk(
                eliminate_dead_calls(mine.calls, mine.outputs),
                eliminate_dead_calls(other.calls, other.outputs),
                new=True,
                depth=depth + 1,
            )
            outputs = [self._pair(*pair) for pair in zip(mine.outputs, other.outputs, strict=True)]
        except RefusedError as error:
            raise RefusedError(f"{what}: in its decomposition: {error}") from None
        if self._interventions == before:  # the kernel itself leaves padding alone
            del self.calls[calls:], self.log[log:]
            self._emit(exact, padded, operands, (), new)
        else:
            self.log.append("decomposed")
            self._know(exact.outputs, padded.outputs, outputs)

    # Pairs of operands --------------------------------------------------------------------

    def _pair(self, exact: Operand, padded: Operand) -> Operand:
        """Return the operand of the program for an operand of both traces."""
        if isinstance(exact, Constant) and isinstance(padded, Constant):
            found = self._constants.get((exact, padded))
            if found is None:
                found = self._constants[exact, padded] = self._hold(exact, padded)
            if isinstance(found, Value):
                self._interventions += 1
                self.log.append("varying")
            return found
        if isinstance(exact, Value) and isinstance(padded, Value):
            mine = self._exact.get(exact)
            if mine is not None and mine is self._padded.get(padded):
                return mine
        raise RefusedError("the function uses other values at another size")

    def _known_data(self, operand: Operand) -> Callable[[], Any] | None:
        """Return a function that reads an operand at exact sizes; None if it is computed."""
        constant = operand if isinstance(operand, Constant) else self.varying.get(operand)
        return None if constant is None else partial(_data, constant)

    def _hold(self, exact: Constant, padded: Constant) -> Operand:
        """Return a constant, if that at padded sizes begins with that at exact sizes."""
        mine, other = exact.placement.type, padded.placement.type
        if exact.buffer is padded.buffer and mine == other:
            return padded
        if mine.dtype is not other.dtype or mine.rank != other.rank or mine.dtype is dt.string:
            raise RefusedError(f"a constant is {mine} at one size, and {other} at another")
        data, whole = _data(exact), _data(padded)
        corner = whole[tuple(slice(size) for size in mine.shape)]
        if corner.shape == data.shape and corner.tobytes() == data.tobytes():
            return padded
        if any(a > b for a, b in zip(mine.shape, other.shape, strict=True)):
            raise RefusedError(f"a constant is {mine} at one size, and {other} at another")
        made = Value(padded.placement)
        self.varying[made] = exact
        return made


def build(
    engine: Engine, device: Device, calls: Sequence[Masked], sizes: Sequence[tuple[int, int]]
) -> tuple[list[Call], list[Value]]:
    """Return the calls of an alignment with those that mask, and the masks as inputs: bool[n]."""
    trace = Trace(engine, device)
    masks = [trace.enter(TensorType(dt.bool_, (padded,))) for _, padded in sizes]

    def tensor(operand: Operand) -> Tensor:
        if isinstance(operand, Constant):
            return Tensor._of(operand.buffer, operand.placement)
        return Tensor._of(operand, trace.device.placement(operand.placement.type))

    try:
        with use_context(trace.context()):
            for item in calls:
                operands = flatten(item.inputs)
                for mask, at in item.masks:
                    x = tensor(operands[mask.input])
                    shape = [1] * x.ndim
                    shape[mask.axis] = -1
                    keep = movement.reshape(masks[at][1], shape)
                    masked = elementwise.where(keep, x, mask.neutral)
                    operands[mask.input] = trace.operand(masked)
                inputs = _like(item.inputs, iter(operands))
                trace.calls.append(Call(item.call.plan, inputs, item.outputs, item.call.site))
    finally:
        recorded = trace.finish()
    return recorded.calls, [value for value, _ in masks]


def _like(inputs: Any, operands: Any) -> list[Any]:
    """Return a call's inputs with other operands."""
    return [
        _like(each, operands) if isinstance(each, list) else each and next(operands)
        for each in inputs
    ]


def _data(constant: Constant) -> np.ndarray[Any, Any]:
    return constant.placement.device.backend.to_host(constant.buffer)


def _at(call: Call) -> str:
    return "" if call.site is None else f" ({call.site.short})"
