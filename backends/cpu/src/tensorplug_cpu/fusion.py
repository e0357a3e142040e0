"""Fusion: finds chains of elementwise kernels in a program, to be run block by block.

A call joins the group of the calls whose results it uses, unless a call outside has used such a
result already: then the group could not run at the place of its last member.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import FlatCall, FlatProgram, Shape, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.chains import Member, Operand, chain_kernel
from tensorplug_cpu.fusible import body_of, epilogue_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_cpu.fusible import Epilogue

__all__ = ["fuse"]

LEAST: Final = 1 << 14
"""With fewer elements, blocks cost more than they save."""


def fuse(program: FlatProgram) -> Sequence[FlatCall]:
    """Return the calls of a program, with each group of elementwise calls fused into one."""
    grouping = _Grouping(program)
    for at, call in enumerate(program.calls):
        grouping.place(at, call)
    return grouping.calls()


@dataclass(eq=False)
class _Group:
    """Calls that run together on arrays of one shape.

    ``row``: the length of the rows to which a row or a column broadcasts; None while every input
    is one number or has all elements. ``open``: no call outside has used a result yet.
    """

    shape: Shape
    row: int | None = None
    places: list[int] = field(default_factory=list)
    open: bool = True


class _Grouping:
    """The groups of a program, as far as its calls have been placed."""

    def __init__(self, program: FlatProgram) -> None:
        self.program = program
        self.groups: dict[int, _Group] = {}  # by the slot that a member fills
        self.reduced: set[int] = set()  # slots filled by epilogues, after all blocks

    def place(self, at: int, call: FlatCall) -> None:
        """Put a call into a group, perhaps a new one, or close the groups that it uses."""
        slots = _slots(call)
        for slot in self.reduced.intersection(slots):
            self.groups[slot].open = False
        used = dict.fromkeys(self.groups[slot] for slot in slots if slot in self.groups)
        group = self._candidate(call)
        for other in used:
            if group is None or not self._merge(group, other):
                other.open = False
        if group is not None:
            group.places.append(at)
            self.groups[call.outputs[0]] = group
            if body_of(call.run) is None:
                self.reduced.add(call.outputs[0])

    def _candidate(self, call: FlatCall) -> _Group | None:
        """Return a group of this call alone, or None if it cannot be fused."""
        epilogue = epilogue_of(call.run)
        if call.multiple_outputs or (body_of(call.run) is None and epilogue is None):
            return None
        out = self.program.types[call.outputs[0]]
        if epilogue is not None:
            out = self.program.types[_slots(call)[0]]
            if _slots(call)[0] not in self.groups or _slots(call)[0] in self.reduced:
                return None  # no chain precedes it
        if out.size < LEAST or out.dtype is dt.string or not call.inputs:
            return None
        group = _Group(out.shape)
        for slot in call.inputs:
            if not isinstance(slot, int):
                return None
            operand = _operand(self.program.types[slot], out.shape)
            if operand is None or not _agree(group, operand.row):
                return None
        return group

    def _merge(self, group: _Group, other: _Group) -> bool:
        """Move all calls of ``other`` into ``group``; return whether that is possible."""
        if other is group:
            return True
        if not other.open or other.shape != group.shape or not _agree(group, other.row):
            return False
        group.places += other.places
        for slot, owner in self.groups.items():
            if owner is other:
                self.groups[slot] = group
        return True

    def calls(self) -> list[FlatCall]:
        """Return the program's calls, with each group at the place of its last member."""
        last = {max(group.places): group for group in self.groups.values()}
        inside = {at for group in last.values() if len(group.places) > 1 for at in group.places}
        result = []
        for at, call in enumerate(self.program.calls):
            group = last.get(at)
            if group is not None and len(group.places) > 1:
                result.append(self._fused(group))
            elif at not in inside:
                result.append(call)
        return result

    def _fused(self, group: _Group) -> FlatCall:
        """Return one call for all calls of a group."""
        program = self.program
        inside = [program.calls[at] for at in sorted(group.places)]
        members = [call for call in inside if call.outputs[0] not in self.reduced]
        reductions = [call for call in inside if call.outputs[0] in self.reduced]
        filled = {call.outputs[0] for call in inside}
        inputs = list(
            dict.fromkeys(slot for call in inside for slot in _slots(call) if slot not in filled)
        )
        others = (call for at, call in enumerate(program.calls) if at not in group.places)
        used = program.outputs.union(slot for call in others for slot in _slots(call))
        outputs = [call.outputs[0] for call in members if call.outputs[0] in used]
        # The index of each slot: first the inputs, then the members' results.
        index = {slot: at for at, slot in enumerate(inputs)}
        index.update((call.outputs[0], len(inputs) + at) for at, call in enumerate(members))
        types = program.types
        run = chain_kernel(
            [_operand(types[slot], group.shape) for slot in inputs],
            [
                Member(
                    body_of(call.run),
                    tuple(index[slot] for slot in _slots(call)),
                    types[call.outputs[0]],
                    outputs.index(call.outputs[0]) if call.outputs[0] in outputs else None,
                )
                for call in members
            ],
            group.row,
            [(index[_slots(call)[0]], _epilogue(call)) for call in reductions],
        )
        name = "+".join(call.name for call in inside)
        outputs += [call.outputs[0] for call in reductions]
        return FlatCall(
            name, None, {}, tuple(inputs), tuple(outputs), multiple_outputs=True, run=run
        )


def _epilogue(call: FlatCall) -> Epilogue:
    epilogue = epilogue_of(call.run)
    assert epilogue is not None  # or the call would not be in a group
    return epilogue


def _slots(call: FlatCall) -> list[int]:
    """Return the slots that a call reads."""
    found: list[int] = []
    for operand in call.inputs:
        if isinstance(operand, tuple):
            found += operand
        elif operand is not None:
            found.append(operand)
    return found


def _agree(group: _Group, row: int | None) -> bool:
    """Return whether a group can have rows of this length; if so, note the length."""
    if row is None or row == group.row:
        return True
    if group.row is None:
        group.row = row
        return True
    return False


def _operand(type_: TensorType, shape: Shape) -> Operand | None:
    """Return how an input broadcasts to ``shape``; None if no ``Operand`` says so."""
    if type_.size == 1:
        return Operand("number", None)
    if type_.shape == shape:
        return Operand("all", None)
    own = type_.shape
    while own and own[0] == 1:
        own = own[1:]
    if own and shape[len(shape) - len(own) :] == own:
        return Operand("row", prod(own))
    if len(type_.shape) == len(shape):
        rank = len(shape)
        while rank and type_.shape[rank - 1] == 1:
            rank -= 1
        if type_.shape[:rank] == shape[:rank]:
            return Operand("column", prod(shape[rank:]))
    return None
