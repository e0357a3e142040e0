"""Fused chains of elementwise kernels: one block of elements goes through all, then the next.

A block and its intermediate values stay in the cache, where one kernel after another would move
all elements to memory and back. Arrays are treated as rows of one length, or as one long row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug_cpu import parallel
from tensorplug_cpu.floating_point import without_warnings
from tensorplug_cpu.outputs import output_allocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call
    from tensorplug_cpu.fusible import Epilogue

__all__ = ["Member", "Operand", "chain_kernel"]

BLOCK: Final = 1 << 18  # bytes of a block of the widest dtype
_SHARED: Final = 1 << 20  # elements from which several threads are worth their hand-over

_SLOW_WITH_NUMBERS: Final = (np.maximum, np.minimum)


class Operand(NamedTuple):
    """How an input broadcasts to the elements.

    ``kind``: one "number", "all" elements, one "row" or one "column". ``row``: the length of the
    rows, for the last two.
    """

    kind: str
    row: int | None


class Member(NamedTuple):
    """One kernel of a chain.

    ``body``: see ``fusible``. ``inputs``: the indices of its inputs, counted over the chain's
    inputs and then its members. ``type``: of its result. ``output``: the index of the result
    among the chain's outputs; None if only the chain uses it.
    """

    body: Any
    inputs: tuple[int, ...]
    type: TensorType
    output: int | None


class _Chain:
    """A chain of kernels: which array each of them reads and writes."""

    def __init__(
        self,
        operands: Sequence[Any],
        members: Sequence[Member],
        epilogues: Sequence[tuple[int, Epilogue]],
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
            self._repeat_slow_numbers()
        if row is not None:
            length = max(1, length // row) * row
        self.length = min(length, self.size)
        self.steps: list[tuple[Any, tuple[int, ...], int]] = []
        self.scratch: list[np.dtype[Any]] = []
        self.epilogues: list[tuple[int, Epilogue]] = []
        self._plan(epilogues)
        first = len(self.operands) + sum(member.output is not None for member in members)
        kinds = [operand.kind for operand in self.operands]
        # Registers that move from block to block, and those that are the same for all blocks.
        self.moving = [at for at in range(first) if at >= len(kinds) or kinds[at] == "all"]
        self.fixed = list(range(first, first + len(self.scratch)))
        if not self.columns:
            self.fixed += [at for at, kind in enumerate(kinds) if kind == "row"]

    def _repeat_slow_numbers(self) -> None:
        """Repeat the numbers that are inputs of ufuncs four times as slow with a number."""
        for member in self.members:
            if member.body in _SLOW_WITH_NUMBERS:
                for at in member.inputs:
                    if at < len(self.operands) and self.operands[at].kind == "number":
                        self.operands[at] = Operand("row", 1)

    def _plan(self, epilogues: Sequence[tuple[int, Epilogue]]) -> None:
        """Assign registers: inputs, outputs, then scratch ones, reused once free."""
        inputs, members = len(self.operands), self.members
        outputs = sum(member.output is not None for member in members)
        last: dict[int, int] = {}
        for at, member in enumerate(members):
            last.update(dict.fromkeys(member.inputs, at))
        last.update((source, len(members)) for source, _ in epilogues)
        register = {at: at for at in range(inputs)}
        free: list[int] = []
        for at, member in enumerate(members):
            unused = [register[source] for source in {*member.inputs} if last[source] == at]
            unused = [number for number in unused if number >= inputs + outputs]
            in_place = isinstance(member.body, np.ufunc)  # other bodies read inputs after writing
            if in_place:
                free += unused
            target = self._register(member, inputs, outputs, free)
            if not in_place:
                free += unused
            register[inputs + at] = target
            sources = tuple(register[source] for source in member.inputs)
            self.steps.append((member.body, sources, target))
        self.epilogues = [(register[source], epilogue) for source, epilogue in epilogues]

    def _register(self, member: Member, inputs: int, outputs: int, free: list[int]) -> int:
        if member.output is not None:
            return inputs + member.output
        dtype, first = member.type.dtype.numpy, inputs + outputs
        for number in reversed(free):
            if self.scratch[number - first] == dtype:
                free.remove(number)
                return number
        self.scratch.append(dtype)
        return first + len(self.scratch) - 1

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        partials: Sequence[Array],
        start: int,
        stop: int,
    ) -> None:
        """Compute the elements from ``start`` to ``stop``.

        ``inputs``, ``outputs``: vectors; an input that is one number has rank 0. ``partials``:
        for each epilogue, the numbers of all blocks.
        """
        length = self.length
        scratch = [np.empty(length, dtype) for dtype in self.scratch]
        repeated = [
            self._repeated(array, operand)
            for array, operand in zip(inputs, self.operands, strict=True)
        ]
        arrays = [*repeated, *outputs, *scratch]
        moving = [(at, arrays[at]) for at in self.moving]
        for first in range(start, stop, length):
            end = min(first + length, stop)
            for at, array in moving:
                arrays[at] = array[first:end]
            if end - first < length:
                self._shorten(arrays, end - first)
            if self.row is not None and self.columns:
                self._as_rows(arrays, repeated, first // self.row, end // self.row)
            for body, sources, target in self.steps:
                if body.__class__ is np.ufunc:
                    body(*[arrays[at] for at in sources], out=arrays[target])
                else:
                    body(arrays[target], *[arrays[at] for at in sources])
            for (at, epilogue), partial in zip(self.epilogues, partials, strict=True):
                partial[first // length] = epilogue.block(arrays[at].reshape(-1))

    def _shorten(self, arrays: list[Array], length: int) -> None:
        """Shorten the fixed registers for the last, incomplete block."""
        for at in self.fixed:
            arrays[at] = arrays[at].reshape(-1)[:length]

    def _as_rows(self, arrays: list[Array], inputs: Sequence[Array], first: int, end: int) -> None:
        """Reshape blocks to rows, and cut columns to the rows from ``first`` to ``end``."""
        for at in (*self.moving, *self.fixed):
            arrays[at] = arrays[at].reshape(-1, self.row or 1)
        for at, (array, operand) in enumerate(zip(inputs, self.operands, strict=True)):
            if operand.kind == "column":
                arrays[at] = array[first:end].reshape(-1, 1)

    def _repeated(self, array: Array, operand: Operand) -> Array:
        """Return a row repeated to the length of a block; other arrays unchanged."""
        if operand.kind != "row" or self.columns:
            return array
        return np.tile(array, self.length // array.size)


def chain_kernel(
    operands: Sequence[Any],
    members: Sequence[Member],
    row: int | None,
    epilogues: Sequence[tuple[int, Epilogue]] = (),
) -> Call:
    """Return a function of the chain's inputs that returns the list of its outputs.

    ``epilogues``: indices of values, counted as in ``Member.inputs``, and how each is reduced.
    The results of these reductions are the last outputs.
    """
    chain = _Chain(operands, members, epilogues, row)
    outputs = sorted(
        (member for member in members if member.output is not None),
        key=lambda member: member.output or 0,
    )
    allocators = [output_allocator(member.type) for member in outputs]
    kinds = [operand.kind for operand in operands]
    blocks = -(-chain.size // chain.length)
    shared = chain.size >= _SHARED and blocks > 1

    def run(*inputs: Array) -> list[Array]:
        results = [allocate() for allocate in allocators]
        partials = [np.empty(blocks) for _ in epilogues]
        flat_inputs = [_flat(array, kind) for array, kind in zip(inputs, kinds, strict=True)]
        flat_outputs = [result.reshape(-1) for result in results]

        def work(numbers: Array) -> None:
            start, stop = int(numbers[0]) * chain.length, (int(numbers[-1]) + 1) * chain.length
            chain.run(flat_inputs, flat_outputs, partials, start, min(stop, chain.size))

        if shared:
            parallel.share_out(work, (), np.arange(blocks))
        else:
            chain.run(flat_inputs, flat_outputs, partials, 0, chain.size)
        for (_, epilogue), partial in zip(epilogues, partials, strict=True):
            results.append(epilogue.finish(partial))
        return results

    return without_warnings(run)


def _flat(array: Array, kind: str) -> Array:
    return array.reshape(()) if kind == "number" else np.ascontiguousarray(array).reshape(-1)
