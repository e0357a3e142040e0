"""Running a chain of elementwise kernels: one block of elements through all, then the next.

A block and what is computed from it stay in the cache, where one kernel after another would move
all elements to memory and back. Arrays are taken as rows of one length, or as one long row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug_cpu import large
from tensorplug_cpu.filling import blank
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call
    from tensorplug_cpu.parts import Ending

__all__ = ["Member", "Operand", "whole"]

BLOCK: Final = 1 << 18  # bytes of a block of the widest dtype
_SHARED: Final = 1 << 20  # elements from which several threads are worth their hand-over

_SLOW_BESIDE_NUMBERS: Final = (np.maximum, np.minimum)


class Operand(NamedTuple):
    """How an input lies beside the elements.

    ``kind``: it is one "number", has "all" elements, is one "row" or one "column". ``row``: how
    long rows then are.
    """

    kind: str
    row: int | None


class Member(NamedTuple):
    """One kernel of a chain.

    ``work``: see ``parts``. ``given``: where its inputs are, counted over the chain's inputs and
    then its members. ``type``: of its result. ``output``: which output of the chain that is, None
    if it is only used inside.
    """

    work: Any
    given: tuple[int, ...]
    type: TensorType
    output: int | None


class _Chain:
    """A chain of kernels: which array each of them reads and writes."""

    def __init__(
        self,
        operands: Sequence[Any],
        members: Sequence[Member],
        ends: Sequence[tuple[int, Ending]],
        row: int | None,
    ) -> None:
        self.operands: list[Operand] = list(operands)
        self.members = list(members)
        self.size = members[0].type.size
        widest = max(member.type.dtype.itemsize for member in members)
        length = max(1, BLOCK // widest)
        self.row = row
        self.columns = any(operand.kind == "column" for operand in operands)
        if not self.columns:
            self._spell_out()
        if row is not None:
            length = max(1, length // row) * row
        self.length = min(length, self.size)
        self.steps: list[tuple[Any, tuple[int, ...], int]] = []
        self.scratch: list[np.dtype[Any]] = []
        self.ends: list[tuple[int, Ending]] = []
        self._plan(ends)
        first = len(self.operands) + sum(member.output is not None for member in members)
        kinds = [operand.kind for operand in self.operands]
        # Registers of which each block has another part, and those that all blocks use.
        self.moving = [at for at in range(first) if at >= len(kinds) or kinds[at] == "all"]
        self.resting = list(range(first, first + len(self.scratch)))
        if not self.columns:
            self.resting += [at for at, kind in enumerate(kinds) if kind == "row"]

    def _spell_out(self) -> None:
        """Let numbers be repeated for functions that take four times as long beside one."""
        for member in self.members:
            if member.work in _SLOW_BESIDE_NUMBERS:
                for at in member.given:
                    if at < len(self.operands) and self.operands[at].kind == "number":
                        self.operands[at] = Operand("row", 1)

    def _plan(self, ends: Sequence[tuple[int, Ending]]) -> None:
        """Choose registers: the inputs', the outputs', then scratch ones, used again when free."""
        inputs, members = len(self.operands), self.members
        outputs = sum(item.output is not None for item in members)
        last: dict[int, int] = {}
        for at, member in enumerate(members):
            last.update(dict.fromkeys(member.given, at))
        last.update((source, len(members)) for source, _ in ends)
        register = {at: at for at in range(inputs)}
        free: list[int] = []
        for at, member in enumerate(members):
            done = [register[item] for item in {*member.given} if last[item] == at]
            done = [item for item in done if item >= inputs + outputs]
            in_place = isinstance(member.work, np.ufunc)  # other work reads inputs after writing
            if in_place:
                free += done
            target = self._register(member, inputs, outputs, free)
            if not in_place:
                free += done
            register[inputs + at] = target
            self.steps.append(
                (member.work, tuple(register[item] for item in member.given), target)
            )
        self.ends = [(register[source], ending) for source, ending in ends]

    def _register(self, member: Member, inputs: int, outputs: int, free: list[int]) -> int:
        if member.output is not None:
            return inputs + member.output
        dtype, first = member.type.dtype.numpy, inputs + outputs
        for item in reversed(free):
            if self.scratch[item - first] == dtype:
                free.remove(item)
                return item
        self.scratch.append(dtype)
        return first + len(self.scratch) - 1

    def run(
        self,
        flat: Sequence[Array],
        results: Sequence[Array],
        numbers: Sequence[Array],
        start: int,
        stop: int,
    ) -> None:
        """Compute the elements from ``start`` to ``stop``.

        ``flat``: the inputs as vectors, numbers as arrays of rank 0; ``results`` likewise.
        ``numbers``: for each ending one for each block.
        """
        length = self.length
        scratch = [np.empty(length, dtype) for dtype in self.scratch]
        repeated = [
            self._repeated(item, operand)
            for item, operand in zip(flat, self.operands, strict=True)
        ]
        arrays = [*repeated, *results, *scratch]
        parts = [(at, arrays[at]) for at in self.moving]
        for first in range(start, stop, length):
            end = min(first + length, stop)
            for at, part in parts:
                arrays[at] = part[first:end]
            if end - first < length:
                self._shorten(arrays, end - first)
            if self.row is not None and self.columns:
                self._as_rows(arrays, repeated, first // self.row, end // self.row)
            for work, given, target in self.steps:
                if work.__class__ is np.ufunc:
                    work(*[arrays[at] for at in given], out=arrays[target])
                else:
                    work(arrays[target], *[arrays[at] for at in given])
            for (at, ending), number in zip(self.ends, numbers, strict=True):
                number[first // length] = ending.block(arrays[at].reshape(-1))

    def _shorten(self, arrays: list[Array], length: int) -> None:
        """Cut what is as long as a block, at the end of the elements."""
        for at in self.resting:
            arrays[at] = arrays[at].reshape(-1)[:length]

    def _as_rows(self, arrays: list[Array], given: Sequence[Array], first: int, end: int) -> None:
        """Take blocks as rows, and of columns the part beside them."""
        for at in (*self.moving, *self.resting):
            arrays[at] = arrays[at].reshape(-1, self.row or 1)
        for at, (item, operand) in enumerate(zip(given, self.operands, strict=True)):
            if operand.kind == "column":
                arrays[at] = item[first:end].reshape(-1, 1)

    def _repeated(self, array: Array, operand: Operand) -> Array:
        """Return a row as often as a block has rows; others as they are."""
        if operand.kind != "row" or self.columns:
            return array
        return np.tile(array, self.length // array.size)


def whole(
    operands: Sequence[Any],
    members: Sequence[Member],
    row: int | None,
    ends: Sequence[tuple[int, Ending]] = (),
) -> Call:
    """Return what runs a chain: a function of its inputs that returns the list of its outputs.

    ``ends``: reductions of what the members at these places make, the last outputs.
    """
    chain = _Chain(operands, members, ends, row)
    outputs = sorted(
        (member for member in members if member.output is not None),
        key=lambda item: item.output or 0,
    )
    makers = [blank(output.type) for output in outputs]
    kinds = [operand.kind for operand in operands]
    blocks = -(-chain.size // chain.length)
    shared = chain.size >= _SHARED and blocks > 1

    def run(*inputs: Array) -> list[Array]:
        results = [make() for make in makers]
        totals = [np.empty(blocks) for _ in ends]
        flat = [_flat(operand, kind) for operand, kind in zip(inputs, kinds, strict=True)]
        into = [result.reshape(-1) for result in results]

        def work(numbers: Array) -> None:
            start, stop = int(numbers[0]) * chain.length, (int(numbers[-1]) + 1) * chain.length
            chain.run(flat, into, totals, start, min(stop, chain.size))

        if shared:
            large.share_out(work, (), np.arange(blocks))
        else:
            chain.run(flat, into, totals, 0, chain.size)
        reduced = [end.finish(total) for (_, end), total in zip(ends, totals, strict=True)]
        return [*results, *reduced]

    return quietly(run)


def _flat(array: Array, kind: str) -> Array:
    return array.reshape(()) if kind == "number" else np.ascontiguousarray(array).reshape(-1)
