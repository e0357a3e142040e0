"""Products of few rows by factors in blocks: of one row or two, the sums of a block are scaled.

A turn begins with what belongs to the blocks of its columns, in vectors along the blocks: their
scales are converted, and their offsets are multiplied by the sums of the rows' blocks, which are
added once for all columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.few_rows import scaled
from tensorplug_loops.schedule.few_rows_kernel import FewRowsKernel
from tensorplug_loops.schedule.panels import number
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import Assign, Shared, Store, load, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.few_rows import FewRows
    from tensorplug_loops.schedule.loops import Loops


_FEW: Final = 2  # rows, for more of which to scale numbers takes fewer instructions


class ScaledRowsKernel(FewRowsKernel):
    """Writes the kernel of a product of few rows whose columns are scaled in blocks."""

    def __init__(self, loops: Loops, machine: Machine, tile: FewRows) -> None:
        super().__init__(loops, machine, tile)
        found = scaled(loops, self._right, tile.roles.inner)
        assert found is not None  # so it was before it was lowered
        self._numbers, self._scale, self._offset = found

    def _reserve(self) -> None:
        super()._reserve()
        w, tile = self.w, self._tile
        w.emit(Shared("s", self._dtype, tile.columns * tile.blocks))
        if self._offset is not None:
            w.emit(Shared("c", self._dtype, tile.rows * tile.blocks))

    def _prepare_rows(self, low: Expression, high: Expression) -> None:
        if self._offset is None:
            return
        w, tile, (block, last) = self.w, self._tile, self._tile.roles.inner
        first = w.let(ZERO - low)
        with w.loop(block, low, high) as at:
            sums = [w.declare(ex.constant(0, self._dtype), tile.lanes) for _ in range(tile.rows)]
            stop, whole = w.number(f"n{last}"), not tile.rest
            with w.loop(None, ZERO, stop, step=tile.lanes, lanes=tile.lanes, whole=whole) as place:
                for own in range(len(self._left)):
                    for name, a in zip(sums, self._rows(own, low, place), strict=True):
                        w.emit(Assign(name, variable(name, self._dtype) + a))
            for row, name in enumerate(sums):
                total = self._sum_of_lanes(name)
                w.emit(Store("c", at + w.let(first + row * tile.blocks), total))

    def _add_columns(
        self,
        sums: Sequence[Sequence[str]],
        columns: Sequence[Sequence[tuple[int, Expression]]],
        low: Expression,
        high: Expression,
    ) -> None:
        w, tile, (block, last) = self.w, self._tile, self._tile.roles.inner
        first = w.let(ZERO - low)
        places = [w.let(first + at * tile.blocks) for at in range(max(tile.columns, tile.rows))]

        def of_blocks(at: Expression) -> None:
            for place, names, own in zip(places, sums, columns, strict=False):
                with w.place(*own):
                    w.emit(Store("s", at + place, self._element(self._scale)))
                    if self._offset is not None:
                        offset = self._element(self._offset)
                        for row, name in enumerate(names):
                            total = w.copy(load("c", self._dtype, at + places[row]))
                            if w.lanes == 1:  # each lane gets its share
                                share = ex.constant(1 / tile.lanes, self._dtype)
                                total = w.let(total * share)
                            self._add(name, offset, total)

        masked = self._machine.masked
        middle = high if masked else w.let(low + ((high - low) & -tile.lanes))
        with w.loop(block, low, middle, step=tile.lanes, lanes=tile.lanes, whole=not masked) as at:
            of_blocks(at)
        if not masked:
            with w.loop(block, middle, high) as at:
                of_blocks(w.let(at))
        step = tile.vectors * tile.lanes
        with w.loop(block, low, high) as at:
            scales = [w.copy(load("s", self._dtype, at + places[c])) for c in range(tile.columns)]
            stop = number(step) if tile.once else w.number(f"n{last}")
            middle = w.let(stop & -step) if tile.rest else stop
            with w.loop(None, ZERO, middle, step=step, lanes=tile.lanes, whole=True) as along:
                vectors = [along + v * tile.lanes if v else along for v in range(tile.vectors)]
                self._add_scaled(sums, columns, scales, low, vectors)
            if tile.rest:
                with w.loop(None, middle, stop, step=tile.lanes, lanes=tile.lanes) as along:
                    self._add_scaled(sums, columns, scales, low, [along])

    def _add_scaled(
        self,
        sums: Sequence[Sequence[str]],
        columns: Sequence[Sequence[tuple[int, Expression]]],
        scales: Sequence[Expression],
        low: Expression,
        vectors: Sequence[Expression],
    ) -> None:
        """Add the scaled sums of some vectors along a block, or for more rows, scaled numbers."""
        w, last = self.w, self._tile.roles.inner[-1]
        rows = [
            (at, right, self._rows(own, low, at))
            for at in vectors
            for own, right in enumerate(self._numbers)
        ]
        for places, names, scale in zip(columns, sums, scales, strict=True):
            totals: list[Expression] = []
            for at, right, elements in rows:
                with w.place(*places, (last, at)):  # the lanes' axis last
                    b = self._element(right)
                if len(names) > _FEW:
                    b = w.let(b * scale)
                    for name, a in zip(names, elements, strict=True):
                        self._add(name, a, b)
                    continue
                totals = [
                    w.let(Expression("fma", self._dtype, (a, b, *before)) if before else a * b)
                    for a, *before in zip(elements, *([totals] if totals else []), strict=True)
                ]
            for name, total in zip(names, totals, strict=False):
                self._add(name, total, scale)
