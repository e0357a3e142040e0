"""Kernels for reductions of long columns: along the axis before the last one.

An item takes some adjacent rows of a segment. A few rows at a time are combined, and the results
with those before, which lie in memory, and stay in the cache meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.accumulators import DEPTH, accumulated, combine, identity
from tensorplug_loops.schedule.lanes import cost
from tensorplug_loops.schedule.nests import Nest
from tensorplug_loops.statements import Array, Store, load

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Expression, Group

SEGMENT: Final = 1 << 12  # elements of the last axis that an item takes
LEAST_ROWS: Final = 256  # fewer are added up in registers
LEAST_COLUMNS: Final = 32


def rows_together(group: Group) -> int:
    """Return how many rows are combined before they are added."""
    roots = [each.expression for each in group.reductions]
    size = cost(roots) + 2 * len(roots)
    return 8 if size <= 8 else 4 if size <= 20 else 2 if size <= 60 else 1


def rows_of_item(group: Group) -> int:
    """Return the rows that an item adds, so that the error of a sum is that of blocks."""
    return DEPTH * rows_together(group)


class Columns(Nest):
    """Writes a kernel with parts: one reduced axis, and a segment of the last one."""

    def _segmented(self, axis: int, low: Expression, high: Expression) -> None:
        w, (rows,) = self.w, self._axes
        wide = self._machine.wide
        self._dtypes = [
            accumulated(each.op, each.expression.dtype, wide=wide)
            for each in self._group.reductions
        ]
        for number, dtype in enumerate(self._dtypes):
            self._extra[f"p{number}"] = Array(f"p{number}", dtype, written=True)

        def fill() -> None:
            for number, (each, dtype) in enumerate(
                zip(self._group.reductions, self._dtypes, strict=True)
            ):
                start = ex.constant(identity(each.op, dtype), dtype)
                w.emit(Store(f"p{number}", self._part_offset(), start))

        self._across(axis, low, high, fill)
        start, stop = self._bounds(rows)
        together = rows_together(self._group)
        middle = w.let(start + ((stop - start) & -together)) if together > 1 else start
        if together > 1:
            with w.loop(None, start, middle, step=together) as row:
                self._across(axis, low, high, lambda: self._add(rows, row, together))
        with w.loop(None, middle, stop) as row:
            self._across(axis, low, high, lambda: self._add(rows, row, 1))

    def _add(self, axis: int, row: Expression, together: int) -> None:
        """Combine adjacent rows in pairs, and the results with those before."""
        w = self.w
        terms: list[list[Expression]] = [[] for _ in self._dtypes]
        for step in range(together):
            with w.place((axis, row + step if step else row)):
                for number, dtype in enumerate(self._dtypes):
                    terms[number].append(self._term(number, dtype))
                self._store_free()
        for number, (each, dtype) in enumerate(
            zip(self._group.reductions, self._dtypes, strict=True)
        ):
            values = terms[number]
            while len(values) > 1:
                pairs = zip(values[::2], values[1::2], strict=True)
                values = [w.here(combine(each.op, a, b)) for a, b in pairs]
            at = self._part_offset()
            before = w.copy(load(f"p{number}", dtype, at))
            w.emit(Store(f"p{number}", at, w.here(combine(each.op, before, values[0]))))

    def _term(self, number: int, dtype: DType) -> Expression:
        w = self.w
        value = w.value(self._results[number][0])
        return w.here(w.lowering.converter.cast(value, self._dtype(number), dtype))
