"""The fusion of chains of elementwise kernels in a compiled program.

A call takes in the calls whose results are not used elsewhere, if these have its shape and dtype.
Their formulas become the statements of one C function, so that a value used twice is computed
once. Memory is read and written once per chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import FlatCall, FlatProgram
from tensorplug_opencl.kernels import ctypes, functions, pointwise
from tensorplug_opencl.kernels.pointwise import Input, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorplug_opencl.runtime import Runtime

__all__ = ["fuse"]

MOST: Final = 12
"""The most operands and constants of one kernel; each is an argument to set at every launch."""


def fuse(program: FlatProgram, runtime: Runtime) -> Sequence[FlatCall]:
    """Return the calls of a program, with each chain of elementwise calls fused into one."""
    chains = _Chains(program)
    for at in range(len(program.calls)):
        chains.place(at)
    return [
        _merge(program, sorted(members), runtime) if len(members) > 1 else program.calls[at]
        for at, members in sorted(chains.members.items())
    ]


def _list_slots(call: FlatCall) -> list[int]:
    found: list[int] = []
    for operand in call.inputs:
        if operand is not None:
            found += operand if isinstance(operand, tuple) else [operand]
    return found


def _get_part(call: FlatCall) -> Part | None:
    """Return a call's formula; None if it has none or takes other inputs than single buffers."""
    part: Part | None = getattr(call.run, pointwise.PART, None)
    plain = all(isinstance(operand, int) for operand in call.inputs)
    return part if plain and not call.multiple_outputs else None


class _Chains:
    """The chains of calls that run together, by the last call."""

    def __init__(self, program: FlatProgram) -> None:
        self.program = program
        self.members: dict[int, set[int]] = {}
        self.maker = {call.outputs[0]: at for at, call in enumerate(program.calls) if call.outputs}
        self.users: dict[int, set[int]] = {}
        for at, call in enumerate(program.calls):
            for slot in _list_slots(call):
                self.users.setdefault(slot, set()).add(at)

    def place(self, at: int) -> None:
        """Merge the chains that end in a call's inputs into the call."""
        members = {at}
        if _get_part(self.program.calls[at]) is not None:
            while self._grow(at, members):
                pass
        self.members[at] = members

    def _grow(self, at: int, members: set[int]) -> bool:
        for slot in [
            slot for member in members for slot in _list_slots(self.program.calls[member])
        ]:
            maker = self.maker.get(slot)
            if maker is None or maker in members or not self._fits(slot, maker, at, members):
                continue
            members |= self.members.pop(maker)
            return True
        return False

    def _fits(self, slot: int, maker: int, at: int, members: set[int]) -> bool:
        program = self.program
        if slot in program.outputs or self.users[slot] - members or maker not in self.members:
            return False
        if _get_part(program.calls[maker]) is None:
            return False
        if program.types[slot] != program.types[program.calls[at].outputs[0]]:
            return False
        return _count_arguments(program, members | self.members[maker]) <= MOST


def _count_arguments(program: FlatProgram, members: Iterable[int]) -> int:
    calls = [program.calls[at] for at in members]
    made = {call.outputs[0] for call in calls}
    sources = {slot for call in calls for slot in _list_slots(call)} - made
    parts = [_get_part(call) for call in calls]
    return len(sources) + sum(len(part.constants) for part in parts if part is not None)


def _merge(program: FlatProgram, members: Sequence[int], runtime: Runtime) -> FlatCall:
    calls = [program.calls[at] for at in members]
    made = {call.outputs[0] for call in calls}
    sources = list(
        dict.fromkeys(slot for call in calls for slot in _list_slots(call) if slot not in made)
    )
    out = program.types[calls[-1].outputs[0]]
    stored, computed = ctypes.stored(out.dtype), ctypes.computed(out.dtype)
    names = {slot: f"i{at}" for at, slot in enumerate(sources)}
    inputs = [Input(names[slot], program.types[slot], stored, computed) for slot in sources]
    texts, lines, called = [], [], []
    constants: list[pointwise.Constant] = []
    for number, call in enumerate(calls):
        part: Any = _get_part(call)
        parameters = [f"const {computed} {name}" for name in part.names]
        parameters += [f"const {constant.ctype} {constant.name}" for constant in part.constants]
        text = f"return ({computed})({part.expression});"
        texts.append(f"INLINE {computed} part_{number}({', '.join(parameters)}) {{ {text} }}")
        called.append(part.expression)
        own = [constant._replace(name=f"k{number}_{constant.name}") for constant in part.constants]
        constants += own
        values = ", ".join(
            [*(names[slot] for slot in _list_slots(call)), *(constant.name for constant in own)]
        )
        names[call.outputs[0]] = f"v{number}"
        lines.append(f"  const {computed} v{number} = part_{number}({values});")
    parameters = [f"const {computed} {operand.name}" for operand in inputs]
    parameters += [f"const {constant.ctype} {constant.name}" for constant in constants]
    body = "\n".join([*lines, f"  return v{len(calls) - 1};"])
    texts.append(f"INLINE {computed} chain({', '.join(parameters)}) {{\n{body}\n}}")
    arguments = ", ".join(
        [*(operand.name for operand in inputs), *(constant.name for constant in constants)]
    )
    title = "+".join(call.name for call in calls)
    run = pointwise.prepare(
        runtime,
        f"{title} {out.dtype}",
        inputs,
        out,
        stored,
        f"chain({arguments})",
        "\n".join([functions.define(" ".join(called), out.dtype), *texts]),
        constants,
    )
    return FlatCall(
        title, None, {}, tuple(sources), calls[-1].outputs, multiple_outputs=False, run=run
    )
