"""Finding chains of elementwise kernels in a program, to be run block by block.

Calls join the group of those whose results they use, as long as nobody else has used these yet:
the group can then run where its last member stood.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import FlatCall, FlatProgram, Shape, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.blockwise import Member, Operand, whole
from tensorplug_cpu.parts import ending_of, work_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_cpu.parts import Ending

__all__ = ["fused"]

LEAST: Final = 1 << 14
"""Elements from which a block is worth its handling."""


def fused(program: FlatProgram) -> Sequence[FlatCall]:
    """Return the calls of a program with groups of elementwise ones made one call each."""
    grouping = _Grouping(program)
    for at, call in enumerate(program.calls):
        grouping.place(at, call)
    return grouping.calls()


@dataclass(eq=False)
class _Group:
    """Calls that run together on arrays of one shape.

    ``row``: how many elements one element of a broadcast input serves, or a row of them is
    repeated after; None while all inputs are single numbers or have all elements.
    ``open``: nobody outside has used a result yet.
    """

    shape: Shape
    row: int | None = None
    places: list[int] = field(default_factory=list)
    open: bool = True


class _Grouping:
    """The groups of a program while they are being found."""

    def __init__(self, program: FlatProgram) -> None:
        self.program = program
        self.groups: dict[int, _Group] = {}  # by the slot that a member fills
        self.reduced: set[int] = set()  # slots that are filled when all blocks are done

    def place(self, at: int, call: FlatCall) -> None:
        """Put a call into a group, a new one perhaps, or close those that it uses."""
        slots = _slots(call)
        for slot in self.reduced.intersection(slots):
            self.groups[slot].open = False
        found = (self.groups.get(slot) for slot in slots)
        used = dict.fromkeys(item for item in found if item is not None)
        group = self._candidate(call)
        for item in used:
            if group is None or not self._merge(group, item):
                item.open = False
        if group is not None:
            group.places.append(at)
            self.groups[call.outputs[0]] = group
            if work_of(call.run) is None:
                self.reduced.add(call.outputs[0])

    def _candidate(self, call: FlatCall) -> _Group | None:
        """Return a group for a call alone, or None if it cannot be in any."""
        ending = ending_of(call.run)
        if call.several or (work_of(call.run) is None and ending is None):
            return None
        out = self.program.types[call.outputs[0]]
        if ending is not None:
            out = self.program.types[_slots(call)[0]]
            if _slots(call)[0] not in self.groups or _slots(call)[0] in self.reduced:
                return None  # there is nothing that it could end
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
        """Let ``group`` take in all of ``other``; say whether it can."""
        if other is group:
            return True
        if not other.open or other.shape != group.shape or not _agree(group, other.row):
            return False
        group.places += other.places
        for slot, item in self.groups.items():
            if item is other:
                self.groups[slot] = group
        return True

    def calls(self) -> list[FlatCall]:
        """Return the program's calls; each group stands where its last member did."""
        last = {max(group.places): group for group in self.groups.values()}
        inside = {at for group in last.values() if len(group.places) > 1 for at in group.places}
        result = []
        for at, call in enumerate(self.program.calls):
            group = last.get(at)
            if group is not None and len(group.places) > 1:
                result.append(self._together(group))
            elif at not in inside:
                result.append(call)
        return result

    def _together(self, group: _Group) -> FlatCall:
        program = self.program
        inside = [program.calls[at] for at in sorted(group.places)]
        members = [call for call in inside if call.outputs[0] not in self.reduced]
        ends = [call for call in inside if call.outputs[0] in self.reduced]
        made = {call.outputs[0] for call in inside}
        given = list(
            dict.fromkeys(slot for call in inside for slot in _slots(call) if slot not in made)
        )
        others = (call for at, call in enumerate(program.calls) if at not in group.places)
        wanted = program.outputs.union(slot for call in others for slot in _slots(call))
        outputs = [call.outputs[0] for call in members if call.outputs[0] in wanted]
        # Where each slot is found: among the inputs, then among the members' results.
        index = {slot: at for at, slot in enumerate(given)}
        index.update((call.outputs[0], len(given) + at) for at, call in enumerate(members))
        types = program.types
        run = whole(
            [_operand(types[slot], group.shape) for slot in given],
            [
                Member(
                    work_of(call.run),
                    tuple(index[slot] for slot in _slots(call)),
                    types[call.outputs[0]],
                    outputs.index(call.outputs[0]) if call.outputs[0] in outputs else None,
                )
                for call in members
            ],
            group.row,
            [(index[_slots(call)[0]], _ending(call)) for call in ends],
        )
        name = "+".join(call.name for call in inside)
        outputs += [call.outputs[0] for call in ends]
        return FlatCall(name, None, {}, tuple(given), tuple(outputs), several=True, run=run)


def _ending(call: FlatCall) -> Ending:
    ending = ending_of(call.run)
    assert ending is not None  # which made it a member
    return ending


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
    """Return whether a group can have inputs with rows of this length too; note that it has."""
    if row is None or row == group.row:
        return True
    if group.row is None:
        group.row = row
        return True
    return False


def _operand(type_: TensorType, shape: Shape) -> Operand | None:
    """Return how an input lies beside elements of ``shape``; None if in another way than these."""
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
