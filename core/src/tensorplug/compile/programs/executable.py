"""Running a program: one kernel after the other, which take and return buffers."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.compile.fusion.arguments import find_element, find_uses
from tensorplug.compile.fusion.groups import fuse
from tensorplug.compile.fusion.reuse import LEAST, Overwriting
from tensorplug.compile.fusion.structures import order, read_number
from tensorplug.compile.programs.memory import plan_memory
from tensorplug.compile.programs.parts import arrange, find_parts
from tensorplug.compile.programs.program import FlatCall, Program
from tensorplug.compile.programs.straight_line import StraightLine
from tensorplug.compile.tracing.decompositions import trace_decomposition
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.replays import calls_at
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract.in_place import InPlace
from tensorplug.dispatch.observer import execute
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.operands import flatten
from tensorplug.engine.plan_calls import complete
from tensorplug.engine.plans import BY_OPS
from tensorplug.errors import TensorplugError
from tensorplug.ops import extents, movement
from tensorplug.ops.indexing import dynamic, slicing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from tensorplug.compile.fusion.structures import FusedCall
    from tensorplug.compile.programs.memory import ProgramMemory
    from tensorplug.compile.programs.program import FlatProgram
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.sizes import Sizes
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.tensor_types import TensorType
    from tensorplug.dispatch.observer import Observer
    from tensorplug.engine.engine import Engine


_VIEWS: Final = frozenset(
    {
        *(movement.IDENTITY, movement.RESHAPE, movement.EXPAND_DIMS, movement.TRANSPOSE),
        *(movement.BROADCAST_TO, extents.SLICE),
        *(slicing.UNPACK, slicing.SPLIT_V, slicing.STRIDED_SLICE, dynamic.DYNAMIC_SLICE),
    }
)
"""Kernels that backends compute without copies."""


class _Step(NamedTuple):
    """One call, and the slots that later calls do not use."""

    call: FlatCall
    done: list[int]


class Executable:
    """An executable program, compiled by the backend if it can and ``fuses``.

    ``small``: whether several calls on few elements are fused too. ``donated``: inputs that only
    the list ``consumed`` of ``run`` refers to. Threads may share a program.
    """

    def __init__(
        self,
        engine: Engine,
        program: Program,
        *,
        fuses: bool = True,
        small: bool = False,
        donated: Sequence[Value] = (),
    ) -> None:
        self._program: Program | Callable[[], Program] = program
        self._uses: list[tuple[Constant, bool | None]] | None = None
        for call in program.calls:
            if isinstance(call.plan, NestedPlan):
                call.plan.prepare(engine, partial(Executable, fuses=fuses), fuses=fuses)
        groups = program.device.capabilities.groups
        fused: Sequence[FusedCall] = ()
        owned = _find_owned(program, donated)
        if small and fuses:
            find_parts(program, owned)
        apart = {at for part in program.parts or () for at in part.members}
        if groups is not None and fuses:
            wanted = program.wanted
            fusion = fuse(
                engine, groups, program.calls, wanted, small=small, owned=owned, apart=apart
            )
            program.set_fusion(fusion)
            fused = fusion.groups
        inside = apart.union(at for each in fused for at in each.members)
        flat = program.flat(inside)
        alone = [call for at, call in enumerate(program.calls) if at not in inside]
        make = partial(Executable, engine, fuses=fuses, small=small)
        self._alone = [
            _spelled_out(engine, call, each, make)
            for call, each in zip(alone, flat.calls, strict=True)
        ]
        calls = arrange(program, program.slots, self._alone, fused, inside)
        self._constants = flat.constants
        self._outputs = [program.slots[value] for value in program.wanted]
        self._owned = frozenset(program.slots[value] for value in owned)
        self._steps = self._in_place(_make_steps(calls, flat))
        calls, done = [step.call for step in self._steps], [step.done for step in self._steps]
        inputs = len(program.inputs)
        self._line = StraightLine(calls, done, inputs, flat.constants, self._outputs)
        program.planned = self._plan_memory(program)
        program.in_place = self._find_overwritten()

    @property
    def program(self) -> Program:
        """The program: its calls, as they were recorded, and its groups."""
        if callable(self._program):
            self._program = self._program()
        return self._program

    @property
    def is_general(self) -> bool:
        """Whether ``at_sizes`` may be asked: what its groups depend on is known."""
        program, fusion = self.program, self.program.fusion
        if fusion is None or program.parts is not None:
            return program.parts is None  # what a backend compiles is of these sizes
        # What is spelled out is a program of its own.
        native = not any(program.calls[at].plan.how in BY_OPS for at in fusion.alone)
        return native and fusion.general is not None

    def order(self, sizes: Sizes | None = None) -> Hashable:
        """Return what its groups depend on beside equal sizes.

        These are how many elements there are, and numbers that follow from sizes.
        """
        types: dict[TensorType, None] = {}
        for key in self.program.slots:
            type_, remains = key.placement.type, isinstance(key, Constant) and key.made is None
            types[type_ if sizes is None or remains else sizes.type(type_)] = None
        groups = self.program.device.capabilities.groups
        least = 0 if groups is None else groups.least_group
        shapes = [type_.shape for type_ in types]
        if self._uses is None:
            uses = find_uses(self.program.calls).items()
            self._uses = [(each, use) for each, use in uses if each.made is not None]
        numbers = []
        for constant, use in self._uses:
            there = constant if sizes is None else sizes.constant(constant)
            # An argument of groups is read from memory.
            known = find_element(there, divides=use) is None
            numbers.append(read_number(there) if known else None)
        larges = tuple([type_.nbytes >= LEAST for type_ in types])
        return order(shapes, least), larges, tuple(numbers)

    def at_sizes(self, sizes: Sizes) -> Executable | None:
        """Return this program at other sizes, whose ``order`` is the same.

        None if the backend declines a group there.

        Raises:
            KernelRefusedError: a kernel does not take these sizes.

        """
        program, slots, fusion = self.program, self.program.slots, self.program.fusion
        values: dict[Any, Any] = {
            key: Value(sizes.place(key.placement)) for key in slots if isinstance(key, Value)
        }
        remade = sizes.constants(slots)
        values.update(remade)
        there = {values.get(key, key): at for key, at in slots.items()}
        constants = dict(self._constants)
        constants.update((slots[key], made.buffer) for key, made in remade.items())
        fused: Sequence[FusedCall] = ()
        if fusion is not None:
            assert fusion.general is not None, "else nobody asks"
            groups: Any = program.device.capabilities.groups
            keyed, structure = fusion.general
            bound = structure.bind(groups, keyed.at(sizes, values))
            if bound is None:
                return None
            fused = bound
            for before, now in zip(fusion.groups, fused, strict=True):
                for source, made in zip(before.inputs, now.inputs, strict=True):
                    if made not in there:  # a number of elements
                        there[made] = there.pop(source)
                        constants[slots[source]] = made.buffer
        inside = {at for each in fused for at in each.members}
        alone = [call for at, call in enumerate(program.calls) if at not in inside]
        flat = [
            replace(known, run=program.kernel(call), unchecked=call.plan)
            for known, call in zip(self._alone, calls_at(alone, sizes, values), strict=True)
        ]
        calls = arrange(program, there, flat, fused, inside)
        other = copy.copy(self)
        other._alone, other._constants, other._uses = flat, constants, None
        steps = [_Step(call, step.done) for call, step in zip(calls, self._steps, strict=True)]
        other._steps = self._in_place(steps)
        other._line = self._line.with_kernels([step.call for step in other._steps], constants)

        def make() -> Program:
            made = Program(
                program.device,
                [values[value] for value in program.inputs],
                calls_at(program.calls, sizes, values),
                [values.get(value, value) for value in program.wanted],
            )
            made.slots = there
            made.fusion = None if fusion is None else fusion._replace(groups=fused, known=True)
            made.planned, made.in_place = other._plan_memory(made), other._find_overwritten()
            return made

        other._program = make
        return other

    def _in_place(self, steps: Sequence[_Step]) -> list[_Step]:
        """Return the calls; kernels write into inputs that nothing reads after them, if they can.

        ``FlatCall.overwrites`` says into which.
        """
        reuses: Any = self.program.device.capabilities.reuses
        result = []
        for call, done in steps:
            kernel = call.run
            if isinstance(kernel, InPlace):
                slot: Any = call.inputs[kernel.at]
                if slot in self._owned and slot in done and flatten(call.inputs).count(slot) == 1:
                    run = Overwriting(kernel, reuses.owns_memory)
                    result.append(_Step(replace(call, run=run, overwrites=(slot,)), done))
                    continue
            result.append(_Step(call, done))
        return result

    def _find_overwritten(self) -> dict[int, int]:
        """Return the slot whose memory a kernel's result takes, by the slot of the result."""
        calls = [step.call for step in self._steps if isinstance(step.call.run, Overwriting)]
        return {call.outputs[0]: call.overwrites[0] for call in calls}

    def _plan_memory(self, program: Program) -> ProgramMemory:
        types = {at: value.placement.type for value, at in program.slots.items()}
        return plan_memory(
            [types[at] for at in sorted(types)],
            len(program.inputs),
            self._constants,
            frozenset(self._outputs),
            [
                (step.call.outputs, step.done, step.call.overwrites, step.call.inside)
                for step in self._steps
            ],
        )

    def run(
        self, buffers: Sequence[Buffer], *, consumed: list[Buffer] | None = None
    ) -> list[Buffer]:
        """Return the wanted buffers; empty ``consumed``, the caller's list of the given ones.

        Raises:
            KernelOutputError: an output does not have the type that its spec infers.

        """
        try:
            return self._line.run(buffers, consumed)
        except BaseException as error:
            failed = self._line.find_failed(error)
            if failed is not None:
                self._annotate(error, self._steps[failed].call)
            raise

    def run_observed(
        self, observers: Sequence[Observer], buffers: Sequence[Buffer]
    ) -> list[Buffer]:
        """Run kernel by kernel inside the observers."""
        slots, program = self.program.slots, self.program
        last = _last_uses(
            [[slots[value] for value in call.operands()] for call in program.calls],
            [[slots[value] for value in call.outputs] for call in program.calls],
            frozenset(self._outputs),
        )
        count = max(slots.values(), default=-1) + 1
        values = [*buffers, *[self._constants.get(at) for at in range(len(buffers), count)]]
        for call, done in zip(program.calls, last, strict=True):
            tensors = [_tensor(operand, values, slots) for operand in call.inputs]
            complete(call.plan)
            try:
                outputs = execute(
                    observers, call.plan, tensors, partial(_run_verified, call, tensors)
                )
            except BaseException as error:
                _locate(error, call)
                raise
            for value, tensor in zip(call.outputs, outputs, strict=True):
                values[slots[value]] = tensor._buffer
            del tensors, outputs
            for at in done:
                values[at] = None
        return [values[at] for at in self._outputs]

    def _annotate(self, error: BaseException, failed: FlatCall) -> None:
        for call in self.program.calls:
            slot = self.program.slots[call.outputs[0]]
            if slot in failed.outputs and failed.spec is call.plan.spec:
                try:
                    call.plan.annotate(error)
                except TensorplugError as found:  # in place of the one that was raised
                    _locate(found, call)
                    raise
                _locate(error, call)
                return
        late = self.program.device.blame(error, failed.name)
        where = f"a compiled program on {self.program.device.name!r}"
        error.add_note(f"in {failed.name} of {where}{late}")


def _find_owned(program: Program, donated: Sequence[Value]) -> list[Value]:
    """Return the values whose memory may be overwritten after their last use.

    A result that is often a view would have its memory checked in each run in vain.
    """
    if program.device.capabilities.reuses is None:
        return []
    calls = [call for call in program.calls if call.plan.spec not in _VIEWS]
    return [*donated, *(value for call in calls for value in call.outputs)]


def _spelled_out(
    engine: Engine, call: Call, flat: FlatCall, make: Callable[[Program], Executable]
) -> FlatCall:
    """Return a call, if it is a function without a kernel, with a program of its decomposition."""
    traced = trace_decomposition(engine, call.plan) if call.plan.how in BY_OPS else None
    if traced is None:
        return flat
    made = make(Program(call.plan.device, traced.inputs, traced.calls, traced.outputs))
    memory = made.program.memory()
    return replace(
        flat, run=lambda *buffers: made.run(buffers)[0], inside=memory.peak - memory.arguments
    )


def _run_verified(call: Call, tensors: Sequence[Any]) -> list[Tensor]:
    outputs = call.plan.execute_verified(tensors)
    call.plan.published = True
    return outputs


def _locate(error: BaseException, call: Call) -> None:
    if call.site is not None:
        error.add_note(f"called in a compiled function, at {call.site.describe()}")


def _tensor(operand: Any, values: Sequence[Any], slots: dict[Any, int]) -> Any:
    """Return an operand's current value: a tensor, a list of tensors, or None."""
    if isinstance(operand, list):
        return [_tensor(member, values, slots) for member in operand]
    if operand is None:
        return None
    buffer = operand.buffer if isinstance(operand, Constant) else values[slots[operand]]
    return Tensor._of(buffer, operand.placement)


def _make_steps(calls: Sequence[FlatCall], flat: FlatProgram) -> list[_Step]:
    used = [flatten(call.inputs) for call in calls]
    kept = flat.outputs.union(flat.constants)
    last = _last_uses(used, [call.outputs for call in calls], kept)
    return [_Step(call, done) for call, done in zip(calls, last, strict=True)]


def _last_uses(
    used: Sequence[Sequence[int]], written: Sequence[Sequence[int]], kept: Collection[int]
) -> list[list[int]]:
    """Return for each call the slots that later calls do not use."""
    seen = set(kept)
    result: list[list[int]] = []
    for inputs, outputs in zip(reversed(used), reversed(written), strict=True):
        done = [at for at in dict.fromkeys((*inputs, *outputs)) if at not in seen]
        seen.update(done)
        result.append(done)
    result.reverse()
    return result
