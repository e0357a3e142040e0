"""Aligning a trace at exact sizes with a trace of the same function at padded sizes.

Both traces must make the same calls, in the same order. Each pair of calls is judged by a rule
(``padding``), or by the decompositions of both. The result is a program at padded sizes:
with masks where padding would take part, and with decompositions in the place of calls inside
which it would. The program has two more kinds of inputs, whose data depend on the exact size:
masks, and constants that differ between the traces, such as the divisor of a mean.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tensorplug.compile.control.repeated import SCAN
from tensorplug.compile.control.sub_programs import SubProgram
from tensorplug.compile.dynamic.padding import judge, same_call
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.decompositions import trace_decomposition
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.passes import eliminate_dead_calls
from tensorplug.compile.tracing.trace import Trace
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract import dtypes as dt
from tensorplug.contract.padding import RefusedError
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.operands import flatten
from tensorplug.ops import movement
from tensorplug.ops.elementwise import choosing

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy as np

    from tensorplug.compile.tracing.decompositions import TracedDecomposition
    from tensorplug.contract.padding import Mask
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan


_DEEPEST = 8  # decompositions inside one another

Operand: TypeAlias = Value | Constant


class Masked(NamedTuple):
    """A call at padded sizes, with the operands of the program; ``masks`` of some of them.

    ``inputs``: as those of a ``Call``. ``masks``: each with the input of the program for it.
    """

    call: Call
    inputs: list[Any]
    outputs: list[Value]
    masks: list[tuple[Mask, Value]]


class Result(NamedTuple):
    """One result of the function: an operand of the program, or data that it does not compute."""

    operand: Value | None
    held: Constant | None


class _Inside(NamedTuple):
    """A sub-program at padded sizes."""

    inputs: list[Value]
    calls: list[Masked]
    outputs: list[Operand]


class Alignment:
    """A trace at exact sizes as a program at padded sizes.

    ``calls``: of the program. ``masks``: the inputs for masks, by exact and padded size.
    ``varying``: the inputs for constants that differ, with their data at the exact sizes.
    ``log``: what was decided; with equal logs, two traces at exact sizes give the same program.
    ``known``: decompositions at padded sizes by plan, which later alignments use again.

    Raises:
        RefusedError: the traces differ, or a call does not allow padding.

    """

    def __init__(
        self, engine: Engine, device: Device, known: dict[Plan, TracedDecomposition | None]
    ) -> None:
        self.calls: list[Masked] = []
        self.masks: dict[tuple[int, int], Value] = {}
        self.varying: dict[Value, Constant] = {}
        self.log: list[Hashable] = []
        self._engine = engine
        self._device = device
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

    def walk(self, exact: Sequence[Call], padded: Sequence[Call], depth: int = 0) -> None:
        """Add the calls of both traces to the program.

        ``depth``: the number of decompositions and sub-programs around them. Inside of one, the
        outputs of ``padded`` get new values.
        """
        for mine, other in zip(exact, padded, strict=False):
            self._add(mine, other, depth)
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

    def _add(self, exact: Call, padded: Call, depth: int) -> None:
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
            self._nest(exact, padded, operands, depth)
            return
        masks: list[Mask] | None = []
        if not same_call(mine, other):
            try:
                known = [self._known_data(each) for each in operands]
                masks = judge(mine, other, known)
            except RefusedError as error:
                raise RefusedError(f"{mine.describe()}{_at(exact)}: {error}") from None
        if masks is None:
            self._decompose(exact, padded, operands, depth)
        else:
            self._emit(exact, padded, operands, masks, depth)

    def _emit(
        self,
        exact: Call,
        padded: Call,
        operands: list[Operand],
        masks: Sequence[Mask],
        depth: int,
    ) -> None:
        placed = []
        for mask in masks:
            if operands[mask.input] in self._zeros and repr(mask.neutral) == "0":
                continue
            mine = flatten(exact.plan.inputs)[mask.input].shape[mask.axis]
            other = flatten(padded.plan.inputs)[mask.input].shape[mask.axis]
            if (mine, other) not in self.masks:
                type_ = TensorType(dt.bool_, (other,))
                self.masks[mine, other] = Value(self._device.placement(type_))
            placed.append((mask, self.masks[mine, other]))
            where = list(self.masks).index((mine, other))
            self.log.append((*mask[:2], repr(mask.neutral), where))
        self._interventions += len(placed)
        self.log.append(None)
        outputs = (
            [Value(output.placement) for output in padded.outputs] if depth else padded.outputs
        )
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
                depth + 1,
            )
            outputs = [self._pair(*pair) for pair in zip(mine.outputs, other.outputs, strict=True)]
        except RefusedError as error:
            raise RefusedError(f"{what}: in its decomposition: {error}") from None
        if self._interventions == before:  # the kernel itself leaves padding alone
            del self.calls[calls:], self.log[log:]
            self._emit(exact, padded, operands, (), depth)
        else:
            self.log.append("decomposed")
            self._know(exact.outputs, padded.outputs, outputs)

    # Calls with programs inside -----------------------------------------------------------

    def _nest(
        self,
        exact: Call,
        padded: Call,
        operands: list[Operand],
        depth: int,
    ) -> None:
        """Judge a loop or a branch by its sub-programs; put masks into the body of a scan."""
        what = f"{exact.plan.spec.name}{_at(exact)}"
        changes: dict[str, SubProgram] = {}
        outer: list[Value] = []
        for name, mine in exact.plan.attributes.items():
            other = padded.plan.attributes[name]
            parts = [mine] if isinstance(mine, SubProgram) else mine
            others = [other] if isinstance(other, SubProgram) else other
            if not isinstance(parts, list | tuple) or not any(
                isinstance(part, SubProgram) for part in parts
            ):
                if mine != other:
                    raise RefusedError(f"{what}: an attribute depends on the size")
                continue
            for part, whole in zip(parts, others, strict=True):
                before = self._interventions
                try:
                    inside = self._walk_inside(part, whole, depth)
                except RefusedError as error:
                    raise RefusedError(f"{what}: inside: {error}") from None
                if self._interventions > before:
                    if exact.plan.spec is not SCAN:
                        raise RefusedError(f"{what}: padding takes part inside")
                    changes[name], outer = self._close(inside)
        if changes:
            assert isinstance(padded.plan, NestedPlan), "it stands beside a nested plan"
            # A scan takes values that are the same in each step behind all others.
            padded = padded.plan.extend(padded, changes, outer)
            operands = [*operands, *outer]
            self.log.append("rebuilt")
        self._emit(exact, padded, operands, (), depth)

    def _walk_inside(self, exact: SubProgram, padded: SubProgram, depth: int) -> _Inside:
        """Return the calls of a sub-program, and its results."""
        start = len(self.calls)
        self._know(exact.inputs, padded.inputs, padded.inputs)
        self.walk(exact.calls, padded.calls, depth + 1)
        outputs = [self._pair(*pair) for pair in zip(exact.outputs, padded.outputs, strict=True)]
        calls = self.calls[start:]
        del self.calls[start:]
        return _Inside(list(padded.inputs), calls, outputs)

    def _close(self, inside: _Inside) -> tuple[SubProgram, list[Value]]:
        """Return a sub-program that takes the values from outside which it uses, and these."""
        calls = build(self._engine, self._device, inside.calls)
        own = {*inside.inputs, *(output for call in calls for output in call.outputs)}
        used = [operand for call in calls for operand in call.operands()] + inside.outputs
        values = [value for value in dict.fromkeys(used) if isinstance(value, Value)]
        outer = [value for value in values if value not in own]
        inner = [Value(value.placement) for value in outer]
        taken: dict[Operand, Operand] = dict(zip(outer, inner, strict=True))
        for call in calls:
            inputs = [taken.get(operand, operand) for operand in call.operands()]
            call.inputs = _like(call.inputs, iter(inputs))
        outputs = [taken.get(operand, operand) for operand in inside.outputs]
        return SubProgram.of([*inside.inputs, *inner], calls, outputs), outer

    # Pairs of operands --------------------------------------------------------------------

    def _pair(self, exact: Operand, padded: Operand) -> Operand:
        """Return the operand of the program for an operand of both traces."""
        if isinstance(exact, Constant) and isinstance(padded, Constant):
            operand = self._constants.get((exact, padded))
            if operand is None:
                operand = self._constants[exact, padded] = self._hold(exact, padded)
            if isinstance(operand, Value):
                self._interventions += 1
                self.log.append("varying")
            return operand
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


def build(engine: Engine, device: Device, calls: Sequence[Masked]) -> list[Call]:
    """Return the calls of an alignment with those that mask."""
    trace = Trace(engine, device)

    def tensor(operand: Operand) -> Tensor:
        if isinstance(operand, Constant):
            return Tensor._of(operand.buffer, operand.placement)
        return Tensor._of(operand, trace.device.placement(operand.placement.type))

    try:
        with use_context(trace.context()):
            for item in calls:
                operands = flatten(item.inputs)
                for mask, keep in item.masks:
                    x = tensor(operands[mask.input])
                    shape = [1] * x.ndim
                    shape[mask.axis] = -1
                    condition = movement.reshape(tensor(keep), shape)
                    masked = choosing.where(condition, x, mask.neutral)
                    operands[mask.input] = trace.operand(masked)
                inputs = _like(item.inputs, iter(operands))
                trace.calls.append(Call(item.call.plan, inputs, item.outputs, item.call.site))
    finally:
        recorded = trace.finish()
    return recorded.calls


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
