"""Loops that a backend runs as a whole: their bodies as data, for ``CompilesLoops``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.fusion.groups import fuse
from tensorplug.compile.programs.memory import plan_memory
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract.loop_bodies import BodyCall, LoopBody
from tensorplug.contract.spec import TensorType
from tensorplug.engine.operands import flatten
from tensorplug.engine.plan_calls import complete

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.compile.control.sub_programs import SubProgram
    from tensorplug.compile.tracing.nested import NestedPlan
    from tensorplug.contract.backend import Buffer, CompilesGroups
    from tensorplug.contract.groups import Group
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.engine.engine import Engine

    Source = Value | Constant
    Whole = Callable[..., Sequence[Buffer]]


class _Forms:
    """Takes every group as it is formed: whether it can be compiled is asked with the loop."""

    least_group = 1

    def __init__(self, groups: CompilesGroups | None) -> None:
        self.functions = frozenset(groups.functions if groups else ())

    def compile_group(self, group: Group) -> Callable[..., Any]:
        """Accept ``group``; the function is never called."""
        return lambda: group


class _Call(NamedTuple):
    """A call of a body, before its values have slots."""

    of: Group | KernelSpec
    attributes: Mapping[str, Any]
    inputs: Sequence[Any]
    outputs: Sequence[Value]
    run: Callable[..., Any] | None = None


class _Part(NamedTuple):
    """A sub-program of a loop, with its calls as a backend runs them."""

    program: Program
    calls: list[_Call]


def compile_scan(engine: Engine, plan: NestedPlan) -> Whole | None:
    """Return the backend's function for a ``Scan``; None if it runs step by step."""
    known = plan.attributes
    carries, sequences = known["carries"], known["sequences"]
    types = [
        TensorType(type_.dtype, type_.shape[1:]) if carries <= at < carries + sequences else type_
        for at, type_ in enumerate(plan.types)
    ]
    loop = LoopBody(
        plan.spec.name,
        tuple(types),
        carries,
        sequences,
        len(types) - carries - sequences,
        (),
        (),
        (),
        known["length"],
        known["reverse"],
    )
    return _compile(engine, plan, loop, {"body": (known["body"], range(len(types)))})


def compile_while(engine: Engine, plan: NestedPlan) -> Whole | None:
    """Return the backend's function for a ``While``; None if it runs step by step."""
    known, carries = plan.attributes, len(plan.outputs)
    fixed = len(plan.types) - carries
    loop = LoopBody(
        plan.spec.name, tuple(plan.types), carries, 0, fixed, (), (), (), known["most"]
    )
    parts = {
        "condition": (known["condition"], known["asks"]),
        "body": (known["body"], known["takes"]),
    }
    return _compile(engine, plan, loop, parts)


def _compile(
    engine: Engine,
    plan: NestedPlan,
    loop: LoopBody,
    parts: Mapping[str, tuple[SubProgram, Sequence[int]]],
) -> Whole | None:
    """Return the backend's function for a loop; None if it declines.

    ``loop``: without constants, calls and results. ``parts``: the sub-programs, in their order in
    a step, and which operands of the loop they take. They become ``plan.parts``.
    """
    loops = plan.device.capabilities.loops
    if loops is None or loop.length == 0:
        return None
    made: dict[str, _Part] = {}
    slots: dict[Source, int] = {}
    for name, (body, takes) in parts.items():
        part = _make_part(engine, plan, body)
        if part is None:
            return None
        made[name] = part
        slots.update(zip(body.inputs, takes, strict=True))
    types = list(loop.types)

    def enter(value: Source) -> None:
        if value not in slots:
            slots[value] = len(types)
            types.append(value.placement.type)

    calls = [call for part in made.values() for call in part.calls]
    *asking, (stepping, _) = parts.values()
    wanted = [*stepping.outputs, *(output for body, _ in asking for output in body.outputs)]
    read = [*(value for call in calls for value in flatten(call.inputs)), *wanted]
    constants = dict.fromkeys(value for value in read if isinstance(value, Constant))
    for constant in constants:
        enter(constant)
    for call in calls:
        for output in call.outputs:
            enter(output)
    run = loops.compile_loop(
        replace(
            loop,
            types=tuple(types),
            constants=tuple(constant.buffer for constant in constants),
            calls=tuple(_with_slots(call, slots) for call in calls),
            results=tuple(slots[output] for output in stepping.outputs),
            asked=len(made["condition"].calls) if asking else 0,
            holds=slots[asking[0][0].outputs[0]] if asking else None,
        )
    )
    if run is None:
        return None
    plan.parts.update({name: part.program for name, part in made.items()})
    return run


def _make_part(engine: Engine, plan: NestedPlan, body: SubProgram) -> _Part | None:
    """Return a sub-program of ``plan``; None if its calls are not all the backend's own."""
    device = plan.device
    if any(
        value.placement.device is not device
        for call in body.calls
        for value in (*call.operands(), *call.outputs)
    ):
        return None
    program = Program(device, body.inputs, body.calls, body.outputs)
    forms = _Forms(device.capabilities.groups)
    fusion = fuse(engine, forms, body.calls, program.wanted, small=True, single=True)
    inside = {at for fused in fusion.groups for at in fused.members}
    ends = {max(fused.members): fused for fused in fusion.groups}
    calls = []
    for at, call in enumerate(body.calls):
        own = call.plan
        if at in ends:
            fused = ends[at]
            calls.append(_Call(fused.group, {}, fused.inputs, fused.outputs))
        elif at not in inside:
            if own.how == "native":
                complete(own)
            if own.how != "native" or own.owner != device.owner or not own.takes_buffers:
                return None
            calls.append(_Call(own.spec, own.attributes, call.inputs, call.outputs, own.call))
    program.set_fusion(fusion)
    flat = program.flat()
    program.planned = plan_memory(  # a backend may keep all values of a step at once
        [value.placement.type for value in program.slots],
        len(program.inputs),
        flat.constants,
        flat.outputs,
        [([program.slots[output] for output in call.outputs], [], [], 0) for call in calls],
    )
    return _Part(program, calls)


def _with_slots(call: _Call, slots: Mapping[Source, int]) -> BodyCall:
    inputs = tuple(
        tuple(slots[member] for member in operand)
        if isinstance(operand, list)
        else None
        if operand is None
        else slots[operand]
        for operand in call.inputs
    )
    outputs = tuple(slots[output] for output in call.outputs)
    return BodyCall(call.of, call.attributes, inputs, outputs, call.run)
