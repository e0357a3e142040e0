"""Runs a loop whose tables are written: its memory, its operands and its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.stepping.driver import Program
    from tensorplug_cpu.jit.stepping.values import Value


ROOM: Final = 1
"""The region of the carries, and of what lasts for a step."""

OPERANDS: Final = 2
"""The region of the first operand; those of the others follow, then those of stacked results, and
of copies of operands in another arrangement."""

_ALIGNED: Final = 64  # bytes
_MOST_WORK: Final = 1 << 26  # instructions between two moments at which signals are seen


def aligned(nbytes: int) -> int:
    """Return how many bytes a value takes in the room."""
    return -(-nbytes // _ALIGNED) * _ALIGNED


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop as a function of its operands.

    ``length``: None if a condition ends it. ``carries``: their types; ``begins``: the offsets in
    the room of the two places of each, None for one that stays as it is. ``stacks``: the types of
    stacked results. ``arrangements``: views of operands that are copied first. ``room``: in bytes.
    ``work``: about how many instructions a step takes.
    """

    program: Program
    constants: Sequence[Array]
    length: int | None
    carries: Sequence[TensorType]
    begins: Sequence[int | None]
    stacks: Sequence[TensorType]
    arrangements: Sequence[Value]
    room: int
    work: int

    def __call__(self, *operands: Array) -> list[Array]:
        """Return the last carries, and the stacked results."""
        arrays = [np.ascontiguousarray(operand) for operand in (*operands, *self.constants)]
        memory = np.empty(self.room + _ALIGNED, np.uint8)
        room = memory[-address(memory) % _ALIGNED :]
        for at, begin in enumerate(self.begins):
            if begin is not None:
                self._carry(room, at, 0)[...] = arrays[at].reshape(self.carries[at].shape)
        stacks = [empty(type_.shape, type_.dtype.numpy) for type_ in self.stacks]
        copies = [
            np.ascontiguousarray(each.of(arrays[each.place.region - OPERANDS]))
            for each in self.arrangements
        ]
        bases = [address(array) for array in (room, *arrays, *stacks, *copies)]
        together = max(1, _MOST_WORK // max(self.work, 1))
        steps = self.program.run(bases, self.length, together)
        last = [
            operands[at] if begin is None else self._carry(room, at, steps % 2).copy()
            for at, begin in enumerate(self.begins)
        ]
        return [*last, *stacks]

    def _carry(self, room: Array, at: int, which: int) -> Array:
        """Return one of the two places of a carry."""
        type_, begin = self.carries[at], self.begins[at]
        assert begin is not None
        start = begin + which * aligned(type_.nbytes)
        flat = room[start : start + type_.nbytes]
        return flat.view(type_.dtype.numpy).reshape(type_.shape)
