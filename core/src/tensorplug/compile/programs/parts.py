"""Parts: calls of a program that the backend compiles as a whole (``CompilesPrograms``).

The backend says which calls it takes. Of these the core forms the fewest parts such that one can
run after the other, with the other calls in between.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.compile.fusion.reuse import LEAST, Consuming, overwriting_group, overwritten
from tensorplug.compile.programs.part import Part, hook_name
from tensorplug.compile.programs.program import FlatCall
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.values import Constant
from tensorplug.contract.programs import ProgramCall, TracedProgram
from tensorplug.errors import KernelRefusedError, RegistrationError
from tensorplug.system.disk_cache import CacheFolder, SealedFiles
from tensorplug.system.foreign_text import message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tensorplug.compile.fusion.structures import FusedCall
    from tensorplug.compile.programs.program import Program
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.values import Value
    from tensorplug.contract.programs import CompiledProgram
    from tensorplug.dispatch.device import Device

    Source = Value | Constant


_LITERAL: Final = 1024  # bytes: a compiler may make use of so few numbers, as of those of groups


def find_parts(program: Program, owned: Collection[Source]) -> None:
    """Let the backend compile parts of ``program``, which gets them, and its calls in their order.

    ``owned``: values whose memory may be overwritten after their last use.

    Raises:
        RegistrationError: the backend took calls that it was not offered.

    """
    device = program.device
    backend = device.capabilities.programs
    if backend is None:
        return
    program.parts, program.declined = [], []
    offered = frozenset(at for at, call in enumerate(program.calls) if _is_offered(call, device))
    if not offered:
        return
    everything, _ = _extract(program.calls, program.wanted, literals=False)
    taken = _called(device, "take_calls", backend.take_calls, everything, offered)
    wrong = [at for at in taken if at not in offered]
    if wrong:
        raise RegistrationError(
            f"{hook_name(device, 'take_calls')} took call {wrong[0]!r} of a program, which was "
            f"not offered: it may take {_listed(sorted(offered))}"
        )
    order, stages = _in_stages(program.calls, frozenset(taken))
    program.calls = [program.calls[at] for at in order]
    for places in stages:
        try:
            part = _compile(program, places, owned)
        except KernelRefusedError as error:
            program.declined.append(f"{len(places)} calls: declined: {message_of(error)}")
        else:
            program.parts.append(part)


def arrange(
    program: Program,
    slots: Mapping[Any, int],
    calls: Sequence[FlatCall],
    groups: Sequence[FusedCall],
    inside: Collection[int],
) -> list[FlatCall]:
    """Return all calls: ``calls``, with groups and parts in the places of their last members.

    ``inside``: the places of all members.
    """
    last: dict[int, Any] = {max(each.members): each for each in (*groups, *(program.parts or ()))}
    result = []
    others = iter(calls)
    for at in range(len(program.calls)):
        unit = last.get(at)
        if unit is not None:
            inputs = tuple(slots[source] for source in unit.inputs)
            outputs = tuple(slots[output] for output in unit.outputs)
            if isinstance(unit, Part):
                name, run, places = unit.name, unit.run, unit.places
            else:
                name, run, places = unit.group.name, unit.run, overwritten(unit.group)
                if places:
                    run = overwriting_group(program.device.backend, unit.group, run)
            overwrites = tuple(inputs[at] for at in places)
            unchecked = unit if isinstance(unit, Part) else None
            made = FlatCall(name, None, inputs, outputs, True, run, overwrites, 0, unchecked)  # noqa: FBT003  # a record
            result.append(made)
        elif at not in inside:
            result.append(next(others))
    return result


def _is_offered(call: Call, device: Device) -> bool:
    """Return whether the backend could have computed a call by a kernel of its own."""
    plan = call.plan
    return (
        plan.how == "native"
        and not isinstance(plan, NestedPlan)
        and plan.owner == device.owner
        and plan.static_shapes
        and all(
            operand.placement.device is device and operand.placement.type.known
            for operand in (*call.operands(), *call.outputs)
        )
    )


def _in_stages(
    calls: Sequence[Call], taken: Collection[int]
) -> tuple[list[int], list[Sequence[int]]]:
    """Return an order of the calls in which those of each part follow one another; the parts.

    A call's stage is the number of times that a chain of calls before it returns to the backend:
    the fewest parts that there can be, since each of these returns begins a new one.
    """
    made: dict[Any, tuple[int, bool]] = {}  # the stage in which a value is made, and by whom
    keys: list[tuple[int, bool]] = []
    for at, call in enumerate(calls):
        ours = at in taken
        before = [made[operand] for operand in call.operands() if operand in made]
        stage = max((number + (ours and not by_us) for number, by_us in before), default=ours - 1)
        keys.append((stage, not ours))
        made.update(dict.fromkeys(call.outputs, (stage, ours)))
    order = sorted(range(len(calls)), key=keys.__getitem__)
    parts: dict[int, list[int]] = {}
    for place, at in enumerate(order):
        if at in taken:
            parts.setdefault(keys[at][0], []).append(place)
    return order, list(parts.values())


def _extract(
    calls: Sequence[Call], outputs: Sequence[Source], *, literals: bool
) -> tuple[TracedProgram, list[Source]]:
    """Return calls as data, and the values that have these numbers."""
    made = {output for call in calls for output in call.outputs}
    used = dict.fromkeys([*(x for call in calls for x in call.operands()), *outputs])
    outside = [operand for operand in used if operand not in made]
    outside.sort(key=lambda operand: isinstance(operand, Constant))
    values = [*outside, *(output for call in calls for output in call.outputs)]
    number = {value: at for at, value in enumerate(values)}
    arrays = {
        number[each]: np.asarray(each.placement.device.read(each.buffer, each.placement.type))
        for each in outside
        if literals and isinstance(each, Constant) and each.placement.type.nbytes <= _LITERAL
    }
    program = TracedProgram(
        tuple(value.placement.type for value in values),
        tuple(number[each] for each in outside if not isinstance(each, Constant)),
        tuple(
            number[each]
            for each in outside
            if isinstance(each, Constant) and number[each] not in arrays
        ),
        tuple(_as_data(call, number) for call in calls),
        tuple(number[value] for value in outputs),
        arrays,
    )
    return program, values


def _as_data(call: Call, number: Mapping[Source, int]) -> ProgramCall:
    def numbered(operand: Any) -> Any:
        if isinstance(operand, list):
            return tuple(map(numbered, operand))
        return None if operand is None else number[operand]

    return ProgramCall(
        call.plan.spec.name,
        call.plan.attributes,
        tuple(map(numbered, call.inputs)),
        tuple(map(numbered, call.outputs)),
    )


def _compile(program: Program, places: Sequence[int], owned: Collection[Source]) -> Part:
    """Return the calls at ``places``, compiled.

    Raises:
        KernelRefusedError: the backend declines them.

    """
    device, inside = program.device, set(places)
    calls = [program.calls[at] for at in places]
    elsewhere: set[Source] = set(program.wanted)
    after: set[Source] = set(program.wanted)
    for at, call in enumerate(program.calls):
        if at not in inside:
            elsewhere.update(call.operands())
            after.update(call.operands() if at > places[-1] else ())
    outputs = [x for call in calls for x in call.outputs if x in elsewhere]
    data, values = _extract(calls, outputs, literals=True)
    inputs: list[Any] = [values[at] for at in data.inputs]
    buffers = [values[at].buffer for at in data.constants]  # type: ignore[union-attr]  # constants
    dying = [
        at
        for at, value in enumerate(inputs)
        if value in owned and value not in after and value.placement.type.nbytes >= LEAST
    ]

    def made(donated: Collection[int]) -> Callable[..., Any]:
        taking = TracedProgram(
            *(data.types, data.inputs, data.constants, data.calls, data.outputs, data.literals),
            frozenset(data.inputs[at] for at in donated),
        )
        bind = _compiled(device, taking).bind
        run: Callable[..., Any] = _called(device, "CompiledProgram.bind", bind, buffers)
        return run

    run = made(dying)
    if dying:
        reuses: Any = device.capabilities.reuses
        run = Consuming(run, dying, reuses.owns_memory, lambda: made(()))
    return Part(device, places, inputs, outputs, dying, run)


def _compiled(device: Device, program: TracedProgram) -> CompiledProgram:
    """Return a program that an earlier process has compiled, or compile it, and keep it."""
    backend = device.capabilities.programs
    assert backend is not None, "else nobody asks"
    core = str(vars(sys.modules["tensorplug"])["__version__"])
    versions = (core, str(device.owner), device.backend.device, backend.compiler)
    key, files = program.digest(*versions), _files(device)
    kept = files.find(key)
    if kept is not None:
        try:
            return _program(device, "load_program", backend.load_program, program, kept)
        except KernelRefusedError:  # says that it must be compiled again
            files.forget(key)
    made = _program(device, "compile_program", backend.compile_program, program)
    content = _called(device, "CompiledProgram.serialize", made.serialize)
    if not isinstance(content, bytes):
        raise RegistrationError(
            f"{hook_name(device, 'CompiledProgram.serialize')} must return bytes, got "
            f"{type(content).__name__}"
        )
    files.keep(key, content)
    return made


def _files(device: Device) -> SealedFiles:
    """Return the place for what the backend compiles, where it may keep other code, too."""
    name = device.backend.name
    variable = f"TENSORPLUG_{name.upper().replace('-', '_')}_CACHE"
    folder = CacheFolder(variable, f"tensorplug-{name}", "compiled programs", ("tensorplug",))
    return SealedFiles(folder.find())


def _program(device: Device, name: str, hook: Callable[..., Any], *given: Any) -> CompiledProgram:
    made: CompiledProgram | None = _called(device, name, hook, *given)
    if made is None:
        raise KernelRefusedError("no reason given")
    lacking = [each for each in ("bind", "serialize") if not callable(getattr(made, each, None))]
    if lacking:
        raise RegistrationError(
            f"{hook_name(device, name)} must return a CompiledProgram, but {type(made).__name__} "
            f"has no {lacking[0]}"
        )
    return made


def _called(device: Device, name: str, hook: Callable[..., Any], *given: Any) -> Any:
    """Return what a hook returns; its errors name the plugin and the hook."""
    try:
        return hook(*given)
    except Exception as error:
        error.add_note(f"in {hook_name(device, name)}")
        raise


def _listed(numbers: Sequence[int]) -> str:
    few = ", ".join(map(str, numbers[:8]))
    return few + (", ..." if len(numbers) > 8 else "")
