"""Kernels whose operands are dense along different axes, as in a transpose: by tiles of both.

What is dense along another axis than the outputs is read as it lies, into an array of the item or
of the work-group, and taken from there. So each line of memory is used up at once.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.lanes import crossed_inputs, dense_axis
from tensorplug_loops.schedule.nests import Nest
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import Barrier, Shared, Store, item, load, member

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from tensorplug.plugin import Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.forms import Form
    from tensorplug_loops.schedule.loops import Loops
    from tensorplug_loops.statements import Kernel

_BLOCK: Final = 8  # elements along either side that an item reads before it uses them
_LITTLE: Final = 16  # instructions, so few that a block has no loop
_TILE: Final = 32  # likewise of a work-group
_SIDE: Final = 64  # likewise of all that an item takes


def share_out(loops: Loops, sides: Sequence[int], machine: Machine) -> tuple[int, int]:
    """Return how many items there are, or groups, and the elements of each."""
    side = _TILE if machine.neighbours else _SIDE
    counts = [-(-loops.lengths[axis] // side) for axis in sides]
    loops.values |= {"size": side, "segments": counts[1], "part": side, "parts": counts[0]}
    outer = [length for axis, length in enumerate(loops.lengths) if axis not in sides]
    return prod(outer) * prod(counts), side * side // machine.group_size


class Tiles(Nest):
    """Writes a kernel of a group without reductions, along the last axis and the crossed one.

    Rows and columns are those of the outputs: the index along the crossed axis, and the last one.
    """

    def __init__(self, loops: Loops, machine: Machine, form: Form) -> None:
        super().__init__(loops, machine, form)
        assert form.tiled is not None
        self._sides = crossed, _ = form.tiled
        numbers = {k for k in crossed_inputs(loops) if dense_axis(loops.operands[k]) == crossed}
        nodes = ex.order(self._outputs, lambda _: False)
        self._staged = [node for node in nodes if node.op == "parameter" and node.value in numbers]

    def kernel(self) -> Kernel:
        """Return the kernel."""
        w = self.w
        crossed, last = self._sides
        outer = [axis for axis in self._kept_axes if axis not in self._sides]
        number, *columns = self._segment(w.let(item()), f"n{last}", "size", "segments", more=True)
        number, *rows = self._segment(number, f"n{crossed}", "part", "parts", more=bool(outer))
        w.bind_all(outer, number)
        if self._machine.neighbours:
            return self._together(rows, columns)
        self._share(_BLOCK, _BLOCK)
        middle_row, middle = (self._whole(*ends) for ends in (rows, columns))
        with (
            w.loop(None, rows[0], middle_row, step=_BLOCK) as row,
            w.loop(None, columns[0], middle, step=_BLOCK) as column,
        ):
            self._block(row, column)
        self._rest((rows[0], middle_row), (middle, columns[1]))
        self._rest((middle_row, rows[1]), columns)
        return w.kernel(self._group.name)

    def _share(self, rows: int, columns: int) -> None:
        """Make an array for each input that is read before it is used."""
        for node in self._staged:
            self.w.emit(Shared(f"t{node.value}", node.dtype, rows * columns))

    def _at(self, row: Expression, column: Expression) -> AbstractContextManager[None]:
        crossed, last = self._sides
        return self.w.place((crossed, row), (last, column))

    def _read(self, at: Expression) -> None:
        for node in self._staged:
            self.w.emit(Store(f"t{node.value}", at, self.w.value(node)))

    def _use(self, at: Expression) -> None:
        for node in self._staged:
            self.w.know(node, load(f"t{node.value}", node.dtype, at))
        self._store(range(len(self._outputs)))

    def _whole(self, low: Expression, high: Expression) -> Expression:
        """Return where the last whole block ends."""
        return self.w.let(low + ((high - low) & -_BLOCK))

    def _block(self, row: Expression, column: Expression) -> None:
        """Write a block of an item, whose size compilers see."""
        w, size = self.w, ex.constant(_BLOCK, dt.int64)
        lanes = _BLOCK if self._machine.vector_bytes and self._machine.lanes >= _BLOCK else 1
        sides = (self._sides[0], row), (self._sides[1], column)
        for use in self._read, self._use:
            (outer, first), (inner, second) = sides[:: -1 if use == self._read else 1]
            for i in self._lines():
                with (
                    w.place((outer, w.let(first + i) if i else first)),
                    w.loop(None, ZERO, size, step=lanes, lanes=lanes, whole=True) as j,
                    w.place((inner, second + j)),
                ):
                    use(j + i * _BLOCK if use == self._read else j * _BLOCK + i)

    def _lines(self) -> Iterator[Expression | int]:
        """Give the number of each line of a block: one after the other, or in a loop."""
        if self.cost <= _LITTLE:
            yield from range(_BLOCK)
        else:
            with self.w.loop(None, ZERO, ex.constant(_BLOCK, dt.int64)) as i:
                yield i

    def _rest(self, rows: Sequence[Expression], columns: Sequence[Expression]) -> None:
        """Write elements outside of whole blocks."""
        w, (crossed, last) = self.w, self._sides
        with w.loop(crossed, *rows), w.loop(last, *columns):
            self._store(range(len(self._outputs)))

    def _together(self, rows: Sequence[Expression], columns: Sequence[Expression]) -> Kernel:
        """Write what a work-group does: neighbours read neighbours, and write neighbours."""
        w, members = self.w, min(self._machine.group_size, _TILE * _TILE)
        pitch = _TILE + 1  # so that a column lies in as many banks of memory as it has elements
        self._share(_TILE, pitch)
        first, size = w.let(member()), ex.constant(_TILE * _TILE, dt.int64)
        tile = ex.constant(_TILE, dt.int64)
        for use in self._read, self._use:
            with w.loop(None, first, size, step=members) as k:
                i, j = w.divided(k, tile)[:: -1 if use == self._read else 1]
                row, column = w.let(rows[0] + i), w.let(columns[0] + j)
                inside = ex.apply("logical_and", row < rows[1], column < columns[1])
                with w.when(w.let(inside)), self._at(row, column):
                    use(j * pitch + i)
            if use == self._read:
                w.emit(Barrier())
        return w.kernel(self._group.name, group_size=members)
