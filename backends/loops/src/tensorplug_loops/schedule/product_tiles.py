"""Kernels for products: tiles of sums, in variables, of rows and vectors of columns.

An item takes some panels of rows, each as high as a tile, and runs through panels of columns. It
copies a block of its rows to its own memory; a kernel before has copied the columns likewise. A
tile that reaches over the end is computed as a whole. Its sums lie in the item's memory when the
outputs are computed of them.

Source: Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM Transactions
on Mathematical Software 34, 2008; here the columns' block is the one that stays in the cache.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.lanes import lies_near
from tensorplug_loops.schedule.panels import Copies, number
from tensorplug_loops.schedule.product_windows import WindowRows
from tensorplug_loops.schedule.products import window_operand
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import (
    Array,
    Assign,
    Kernel,
    Shared,
    Store,
    item,
    load,
    variable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tiles(Copies):
    """Writes the kernels of one product: one that copies columns, if need be, and its own."""

    def write(self) -> list[tuple[Kernel, list[int]]]:
        """Return the kernels, and for each the numbers of its arrays.

        They are those of the operands; -1 is the first temporary, -2 the second one, and so on.
        """
        copies = self._tile.packs[1]
        return [*([self._copy_columns()] if copies else []), self._multiply()]

    def _multiply(self) -> tuple[Kernel, list[int]]:
        """Return the kernel of the product."""
        w, tile = self._begin(), self._tile
        w.emit(Shared("t", self._dtype, tile.rows * tile.columns))
        if tile.packs[0]:
            w.emit(Shared("a", self._dtype, tile.rows * tile.depth))
        rest, of_columns = w.divided(w.let(item()), w.number("groups_n"))
        self._batch, of_rows = w.divided(rest, w.number("groups_m"))
        batch = self._batch
        if tile.slices:
            self._slice, batch = w.divided(self._batch, w.number("batch"))
        self._matrix = batch
        w.bind_all(tile.roles.batch, batch)
        self._columns = self._range(of_columns, "size_n", "panels_n")
        self._rows = self._range(of_rows, "size_m", "panels_m")
        if tile.blocked:
            self._own_blocks = ZERO, w.number("blocks")
            if tile.slices:
                low = w.let(self._slice * w.number("share"))
                self._own_blocks = (
                    low,
                    w.least(low + w.number("share"), w.number("blocks")),
                )
            with w.loop(None, *self._own_blocks) as block:
                self._multiply_block(block)
        else:
            self._bounds = ZERO, w.number(f"n{tile.roles.inner[0]}")
            self._start, self._depth = ZERO, w.number("inner")
            self._panels(None)
        copied = tile.packs[1]
        more = [(Array("b", self._dtype), -1)] if copied else []
        if tile.blocked:
            more.append((Array("c", self._dtype, written=True), -1 - copied))
        factors = self._factors[:1] if copied else self._factors
        if tile.slices:
            more.append((Array("p", self._dtype, written=True), -2 - copied))
            name = f"{self._loops.group.name}: slices"
            return self._finish(name, self._operands(factors), *more)
        outputs = range(w.inputs, len(self._loops.operands))
        read = [*self._operands([*factors, *self._outputs]), *outputs]
        return self._finish(self._loops.group.name, read, *more)

    def _range(self, group: Expression, size: str, panels: str) -> tuple[Expression, Expression]:
        w = self.w
        low = w.let(group * w.number(size))
        return low, w.least(low + w.number(size), w.number(panels))

    def _multiply_block(self, block: Expression) -> None:
        """Write what is done for a block of the inner elements."""
        w, inner, split = self.w, self._tile.roles.inner, self._tile.split
        chunk = block
        if split:
            before, chunk = w.divided(block, w.number("chunks"))
            w.bind_all(inner[:split], before)
        low = w.let(chunk * w.number("part"))
        high = w.least(low + w.number("part"), w.number(f"n{inner[split]}"))
        self._bounds = low, high
        start, depth = ZERO, w.let(high - low)
        for axis in inner[:split]:
            start = w.let(start * w.number(f"n{axis}") + w.value(ex.axis(axis)))
        start = w.let(start * w.number(f"n{inner[split]}") + low)
        for axis in inner[split + 1 :]:
            start, depth = (w.let(each * w.number(f"n{axis}")) for each in (start, depth))
        self._start, self._depth = start, depth
        self._panels(block)

    def _panels(self, block: Expression | None) -> None:
        w, tile = self.w, self._tile
        with w.loop(None, *self._rows) as panel:
            rows: Sequence[Expression] | WindowRows | None = None
            if tile.packs[0]:
                split = tile.split if tile.blocked else 0
                self._copy(0, panel, "a", ZERO, split, self._bounds, self._bounds[0])
            elif tile.windows:
                rows = self._windows(panel)
            else:
                rows = self._row_offsets(panel)
            with w.loop(None, *self._columns) as column:
                shift = self._sum(panel, column, rows, block)
                if block is None:
                    self._write(panel, column, shift)
                else:
                    last = ex.apply("equal", block + 1, self._own_blocks[1])
                    with w.when(w.let(last)):
                        self._write(panel, column, shift)

    def _offset(self, k: int, places: Sequence[tuple[int, Expression]]) -> Expression:
        """Return an operand's offset at a place, at the start of the block."""
        w, inner = self.w, self._tile.roles.inner
        split = self._tile.split if self._tile.blocked else 0
        starts = [(axis, ZERO if at else self._bounds[0]) for at, axis in enumerate(inner[split:])]
        with w.place(*places, *starts):
            return w.let(w.offset(k))

    def _row_offsets(self, panel: Expression) -> list[Expression]:
        """Return where the rows of a tile begin."""
        k = self._plain[0]
        assert k is not None
        return [self._offset(k, places) for places in self._row_places(panel)]

    def _row_places(self, panel: Expression) -> list[list[tuple[int, Expression]]]:
        """Return where the rows of a tile are; those behind the end are the last one."""
        w, tile = self.w, self._tile
        first, last = w.let(panel * tile.rows), w.let(w.number("rows") - 1)
        return [w.places(tile.roles.rows, w.least(first + at, last)) for at in range(tile.rows)]

    def _windows(self, panel: Expression) -> WindowRows:
        k = window_operand(self._loops, self._tile.roles)
        assert k is not None
        return WindowRows(self.w, k, self._row_places(panel), self._tile.roles.inner)

    def _sum(
        self,
        panel: Expression,
        column: Expression,
        rows: Sequence[Expression] | WindowRows | None,
        block: Expression | None,
    ) -> Expression:
        """Write the sums of a tile to the item's memory; return where its first column lies."""
        w, tile, dtype = self.w, self._tile, self._dtype
        width, shift = tile.columns, ZERO
        k = self._plain[1]
        if k is None:
            own = w.let(self._matrix * w.number("panels_n") + column)
            base = w.let((own * w.number("inner") + self._start) * width)
            array, step = "b", number(width)
        else:
            first = w.let(column * width)
            start = w.least(first, w.let(w.number("columns") - width))
            shift = w.let(first - start)
            axes = tile.roles.columns
            places = [(axis, ZERO) for axis in axes[:-1]]
            base = self._offset(k, [*places, (axes[-1], start)])
            array, step = w.array(k), self._inner_step(k)
        lanes = tile.lanes
        zero = ex.constant(0, dtype)
        with w.loop(None, ZERO, number(lanes), step=lanes, lanes=lanes, whole=True) as lane:
            sums = [[w.declare(zero) for _ in range(tile.vectors)] for _ in range(tile.rows)]
            if isinstance(rows, WindowRows):

                def add(
                    at: Expression, own: Sequence[tuple[Expression, Expression | None]]
                ) -> None:
                    vectors = self._vectors(array, w.let(base + at * step), lane)
                    for each, (offset, inside) in zip(sums, own, strict=True):
                        with nullcontext() if inside is None else w.when(inside):
                            self._add_row(each, rows.array, offset, vectors)

                rows.add_up(tile.split if tile.blocked else 0, self._bounds, add)
            else:
                with w.loop(None, ZERO, self._depth) as at:
                    vectors = self._vectors(array, w.let(base + at * step), lane)
                    self._add(sums, at, rows, vectors)
            if block is not None:
                self._gather(sums, panel, column, block, lane)
            for i, j, name in _each(sums):
                w.emit(Store("t", lane + (i * width + j * lanes), variable(name, dtype)))
        return shift

    def _vectors(self, array: str, at: Expression, lane: Expression) -> list[Expression]:
        """Return the columns of one inner element."""
        w, tile = self.w, self._tile
        return [
            w.copy(load(array, self._dtype, lane + (at + j * tile.lanes)))
            for j in range(tile.vectors)
        ]

    def _add(
        self,
        sums: list[list[str]],
        at: Expression,
        rows: Sequence[Expression] | None,
        vectors: Sequence[Expression],
    ) -> None:
        """Add the products of one inner element."""
        w, tile = self.w, self._tile
        if rows is None:
            own, step = (at, tile.depth) if tile.runs else (w.let(at * tile.rows), 1)
            offsets, name = [own + i * step for i in range(tile.rows)], "a"
        else:
            k = self._plain[0]
            assert k is not None
            along = w.let(at * self._inner_step(k))
            offsets, name = [row + along for row in rows], w.array(k)
        for own_sums, offset in zip(sums, offsets, strict=True):
            self._add_row(own_sums, name, offset, vectors)

    def _add_row(
        self, sums: list[str], array: str, offset: Expression, vectors: Sequence[Expression]
    ) -> None:
        """Add the products of a row's element."""
        w, dtype = self.w, self._dtype
        a = w.copy(load(array, dtype, offset))
        for name, b in zip(sums, vectors, strict=True):
            total = variable(name, dtype)
            if dtype in dt.FLOATING:
                w.emit(Assign(name, Expression("fma", dtype, (a, b, total))))
            else:
                w.emit(Assign(name, total + a * b))

    def _gather(
        self,
        sums: list[list[str]],
        panel: Expression,
        column: Expression,
        block: Expression,
        lane: Expression,
    ) -> None:
        """Add what earlier blocks have summed, and keep the sums for the next."""
        w, tile, dtype = self.w, self._tile, self._dtype
        own = w.let(self._batch * w.number("panels_m") + panel)
        own = w.let(own * w.number("panels_n") + column)
        base = w.let(own * (tile.rows * tile.columns))

        def place(i: int, j: int) -> Expression:
            return lane + (base + (i * tile.columns + j * tile.lanes))

        with w.when(w.let(ex.apply("less", self._own_blocks[0], block))):
            for i, j, name in _each(sums):
                before = w.copy(load("c", dtype, place(i, j)))
                w.emit(Assign(name, variable(name, dtype) + before))
        with w.when(w.let(block + 1 < self._own_blocks[1])):
            for i, j, name in _each(sums):
                w.emit(Store("c", place(i, j), variable(name, dtype)))

    def _write(self, panel: Expression, column: Expression, shift: Expression) -> None:
        """Write the outputs of a tile."""
        w, tile, roles = self.w, self._tile, self._tile.roles
        row = w.let(panel * tile.rows)
        row_end = w.least(row + tile.rows, w.number("rows"))
        first = w.let(column * tile.columns)
        end = w.least(first + tile.columns, w.number("columns"))
        base = w.let(shift - first)

        def element(own: Expression, place: Expression) -> None:
            at = w.let((own - row) * tile.columns + base)
            total = w.copy(load("t", self._dtype, place + at))
            if tile.slices:
                self._write_part("p", self._slice, total)
            else:
                self._write_element(total)

        output = self._loops.operands[-1].offset.steps
        if len(roles.columns) > 1 or output[roles.columns[-1]] != 1:
            with w.loop(None, first, end) as place:
                w.bind_all(roles.columns, place)
                with w.loop(None, row, row_end) as own:
                    w.bind_all(roles.rows, own)
                    element(own, place)
            return
        (axis,) = roles.columns
        with w.loop(None, row, row_end) as own:
            w.bind_all(roles.rows, own)
            written = range(w.inputs, len(self._loops.operands))
            near = lies_near(self._loops, axis, [*self._operands(self._outputs), *written])
            lanes = tile.lanes if self._machine.vector_bytes and near and not tile.slices else 1
            middle = first
            if lanes > 1:
                middle = w.let(first + ((end - first) & -lanes))
                with w.loop(axis, first, middle, step=lanes, lanes=lanes, whole=True) as place:
                    element(own, place)
            with w.loop(axis, middle, end) as place:
                element(own, place)


def _each(sums: list[list[str]]) -> list[tuple[int, int, str]]:
    return [(i, j, name) for i, row in enumerate(sums) for j, name in enumerate(row)]
