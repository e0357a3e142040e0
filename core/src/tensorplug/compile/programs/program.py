"""Programs: their inputs, calls and results, and their text form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.plan_calls import complete, run_call
from tensorplug.errors import CompileError
from tensorplug.observers.observation import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.compile.fusion.groups import Fusion
    from tensorplug.compile.fusion.structures import FusedCall
    from tensorplug.compile.programs.memory import ProgramMemory
    from tensorplug.compile.programs.part import Part
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.plans import Plan


@dataclass(frozen=True, slots=True)
class FlatCall:
    """One call of a flat program. Buffers are identified by the numbers of their slots.

    ``inputs`` has one entry per declared input: a slot, a list of slots, or None for an absent
    one. ``run`` takes the buffers in this form; it returns one buffer, or with
    ``multiple_outputs`` a sequence. ``spec``: None for a group. ``name`` is for messages.
    ``overwrites``: slots into whose buffers it may write; ``run`` takes the number of references
    to each of them before the other arguments. ``inside``: the bytes that a loop or a branch needs
    besides. ``unchecked``: the plan, or the part, whose first results are still to be checked.
    ``empties``: whether ``run`` may empty its list of operands, and overwrite those that nothing
    else refers to.
    """

    name: str
    spec: KernelSpec | None
    inputs: Sequence[int | list[int] | None]
    outputs: tuple[int, ...]
    multiple_outputs: bool
    run: Callable[..., Any]
    overwrites: tuple[int, ...] = ()
    inside: int = 0
    unchecked: Plan | Part | None = None
    empties: bool = False


@dataclass(frozen=True, slots=True)
class FlatProgram:
    """Calls in an order in which they can run; each slot is written once.

    ``slots``: their number. ``constants``: slots with the same buffer in every run. ``outputs``:
    slots that the program returns; other slots are freed after their last use.
    """

    calls: Sequence[FlatCall]
    slots: int
    constants: Mapping[int, Any]
    outputs: frozenset[int]


@dataclass(eq=False)
class Program:
    """A flat program of kernel calls on one device.

    ``inputs`` are passed to each run, ``wanted`` are returned. ``slots`` numbers all values, the
    inputs first. ``planned``: the memory of its calls as they run, fused ones together.
    ``fusion``: its groups; None if the backend compiles none, or was not asked. ``parts``: those
    that it compiles as a whole, the same; ``declined``: others, with the reason. ``in_place``: by
    the slots of calls' results, those whose memory they take.
    """

    device: Device
    inputs: Sequence[Value]
    calls: Sequence[Call]
    wanted: Sequence[Value | Constant]
    slots: dict[Value | Constant, int] = field(init=False)
    planned: ProgramMemory | None = field(init=False, default=None)
    fusion: Fusion | None = field(init=False, default=None)
    parts: list[Part] | None = field(init=False, default=None)
    declined: Sequence[str] = ()
    in_place: Mapping[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.slots = {operand: at for at, operand in enumerate(self.inputs)}
        for call in self.calls:
            for operand in (*call.operands(), *call.outputs):
                self.slots.setdefault(operand, len(self.slots))
        for value in self.wanted:
            self.slots.setdefault(value, len(self.slots))

    def set_fusion(self, fusion: Fusion) -> None:
        """Keep the groups; they may read constants that no call has."""
        self.fusion = fusion
        for fused in fusion.groups:
            for source in fused.inputs:
                self.slots.setdefault(source, len(self.slots))

    def flat(self, inside: Collection[int] = ()) -> FlatProgram:
        """Return the program with numbers for its values, without the calls at ``inside``."""
        constants = {at: key.buffer for key, at in self.slots.items() if isinstance(key, Constant)}
        results = frozenset(self.slots[value] for value in self.wanted)
        calls = [self._flat(call) for at, call in enumerate(self.calls) if at not in inside]
        return FlatProgram(calls, len(self.slots), constants, results)

    def _flat(self, call: Call) -> FlatCall:
        plan, slots = call.plan, self.slots
        complete(plan)
        run = self.kernel(call)
        return FlatCall(
            plan.spec.name,
            plan.spec if plan.takes_buffers else None,
            [
                [slots[value] for value in operand]
                if isinstance(operand, list)
                else None
                if operand is None
                else slots[operand]
                for operand in call.inputs
            ],
            tuple(slots[output] for output in call.outputs),
            plan.spec.multiple_outputs,
            run,
            inside=plan.needed() if isinstance(plan, NestedPlan) else 0,
            unchecked=None if plan.published else plan,
            empties=isinstance(plan, NestedPlan),
        )

    def kernel(self, call: Call) -> Callable[..., Any]:
        """Return what a call runs on buffers.

        Raises:
            KernelRefusedError: the kernel does not take its sizes.

        """
        complete(call.plan, by_ops=False)
        return self._bound(call) or on_buffers(call.plan, call.inputs)

    def _bound(self, call: Call) -> Callable[..., Any] | None:
        """Return a call's kernel with its constants prepared; None if that changes nothing."""
        binds, plan = self.device.capabilities.binds, call.plan
        is_own = plan.takes_buffers and plan.owner == self.device.owner
        if binds is None or not is_own or plan.device is not self.device:
            return None
        constants = [each.buffer if isinstance(each, Constant) else None for each in call.inputs]
        if all(constant is None for constant in constants):
            return None
        return binds.bind_constants(plan.call, constants)

    def by_ops(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return what a run with ``tensors`` gives, by ops, which other transformations see."""
        known: dict[Value | Constant, Tensor] = dict(zip(self.inputs, tensors, strict=True))

        def tensor(operand: Any) -> Any:
            if isinstance(operand, list):
                return [tensor(member) for member in operand]
            if isinstance(operand, Constant):
                return Tensor._of(operand.buffer, operand.placement)
            return None if operand is None else known[operand]

        for call in self.calls:
            outputs = run_call(call.plan, [tensor(operand) for operand in call.inputs])
            known.update(zip(call.outputs, outputs, strict=True))
        return [tensor(value) for value in self.wanted]

    def memory(self) -> ProgramMemory:
        """Return the bytes that a run takes at most, and what they hold.

        Examples:
            >>> import tensorplug as tp
            >>> f = tp.compile(lambda x: tp.sort(tp.sort(x)))
            >>> memory = f.program(tp.zeros((1000,))).memory()
            >>> memory.arguments, memory.temporaries, memory.results, memory.peak
            (4000, 4000, 4000, 12000)

        """
        if self.planned is None:
            raise CompileError("memory: the program is not complete")
        return self.planned

    def __repr__(self) -> str:
        notes, groups = self._describe_groups()
        units = (("group", self.fusion and self.fusion.groups), ("part", self.parts))
        counts = [
            f", {len(each)} {name}{'s' if len(each) != 1 else ''}"
            for name, each in units
            if each is not None
        ]
        count = "".join(counts)
        lines = [f"<Program on {self.device.name}: {len(self.calls)} calls{count}>"]
        lines += [
            f"  %{at}: {operand.placement.type}, input" for at, operand in enumerate(self.inputs)
        ]
        for key, at in self.slots.items():
            if isinstance(key, Constant):
                lines.append(f"  %{at}: {key.placement.type}, constant")
        for call, note in zip(self.calls, notes, strict=True):
            lines += [self._line(call, note), *_describe_parts(call)]
        returned = ", ".join(f"%{self.slots[value]}" for value in self.wanted)
        return "\n".join([*lines, *groups, f"  return {returned or 'nothing'}"])

    def _line(self, call: Call, note: str) -> str:
        how = "" if call.plan.how == "native" else f" ({call.plan.how})"
        if isinstance(call.plan, NestedPlan) and call.plan.whole:
            how = f" (all steps by {self.device.name})"
        where = "" if call.site is None else f"  # {call.site.short}"
        outputs, inputs = self._names(call.outputs), self._names(call.operands())
        taken = self.in_place.get(self.slots[call.outputs[0]]) if call.outputs else None
        memory = "" if taken is None else f", in the memory of %{taken}"
        return f"  {outputs} = {describe(call.plan)} of {inputs}{how}{memory}{note}{where}"

    def _names(self, values: Sequence[Value | Constant]) -> str:
        return ", ".join(f"%{self.slots[value]}" for value in values)

    def _describe_groups(self) -> tuple[list[str], list[str]]:
        """Return what to say of each call: its group, or why it has none; and of each group."""
        notes, lines = [""] * len(self.calls), []
        for number, part in enumerate(self.parts or (), 1):
            for at in part.members:
                notes[at] = f", in part {number}"
            inputs, outputs = self._names(part.inputs), self._names(part.outputs)
            of = f" of {inputs}" if inputs else ""
            where = f"-> {outputs}, by {self.device.name}"
            lines.append(f"  part {number}: {len(part.members)} calls{of} {where}")
        lines += [f"  {reason}" for reason in self.declined]
        if self.fusion is None:
            return notes, lines
        for number, fused in enumerate(self.fusion.groups, 1):
            for at in fused.members:
                notes[at] = f", in group {number}"
            lines.append(f"  group {number}: {self._describe_group(fused)}")
        lines += [f"  {name}: {reason}" for name, reason in self.fusion.declined.items()]
        for at, reason in self.fusion.alone.items():
            notes[at] = notes[at] or f", alone: {reason}"
        return notes, lines

    def _describe_group(self, fused: FusedCall) -> str:
        group = fused.group
        inputs = f" of {self._names(fused.inputs)}" if fused.inputs else ""
        over = " x ".join(map(str, group.shape)) or "1"
        outputs, device = self._names(fused.outputs), self.device.name
        text = f"{group.name}{inputs} -> {outputs}, by {device} over {over}"
        places = [
            f"%{self.slots[output]} in the memory of %{self.slots[fused.inputs[each.into]]}"
            for output, each in zip(fused.outputs, group.outputs, strict=True)
            if each.into is not None
        ]
        return ", ".join([text, *places])


def _describe_parts(call: Call) -> list[str]:
    """Return the lines of the programs that a call runs, indented."""
    plan = call.plan
    if not isinstance(plan, NestedPlan):
        return []
    lines = []
    for name, program in plan.parts.items():
        lines.append(f"{name}: {program!r}")
    return [f"    {line}" for text in lines for line in text.splitlines()]


def on_buffers(plan: Plan, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that runs a plan on buffers: of ``inputs``, the operands of a call."""
    if plan.takes_buffers:
        return plan.call
    placements = [
        [value.placement for value in operand]
        if isinstance(operand, list)
        else operand and operand.placement
        for operand in inputs
    ]

    def tensor(buffer: Any, placement: Any) -> Any:
        if isinstance(placement, list):
            return [tensor(*pair) for pair in zip(buffer, placement, strict=True)]
        return None if placement is None else Tensor._of(buffer, placement)

    def run(*buffers: Any) -> Any:
        outputs = plan.execute([tensor(*pair) for pair in zip(buffers, placements, strict=True)])
        results = [output._buffer for output in outputs]
        return results if plan.spec.multiple_outputs else results[0]

    return run
