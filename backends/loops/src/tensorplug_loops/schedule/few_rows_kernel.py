"""Writes the kernels of products of few rows: what ``few_rows`` says, in statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.few_rows import GAP
from tensorplug_loops.schedule.panels import Panels, number
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import Assign, Kernel, Shared, Store, item, load, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.few_rows import FewRows
    from tensorplug_loops.schedule.loops import Loops


class FewRowsKernel(Panels):
    """Writes the kernel of a product of few rows."""

    def __init__(self, loops: Loops, machine: Machine, tile: FewRows) -> None:
        super().__init__(loops, machine, tile.roles)
        self._tile = tile
        count = len(loops.group.reductions)
        self._left = loops.roots[tile.roles.left : count : 2]
        self._right = loops.roots[tile.roles.right : count : 2]
        self._outputs = loops.roots[count:]

    def write(self) -> tuple[Kernel, list[int]]:
        """Return the kernel, and the numbers of its arrays, which are those of the operands."""
        w, tile = self._begin(), self._tile
        self._reserve()
        batch, group = w.divided(w.let(item()), w.number("groups_n"))
        w.bind_all(tile.roles.batch, batch)
        self._first = w.let(group * w.number("size_n"))
        self._end = w.least(self._first + w.number("size_n"), w.number("columns"))
        if not tile.across:
            self._along_columns()
        elif tile.chunked:
            with w.loop(None, ZERO, w.number("chunks")) as chunk:
                low = w.let(chunk * w.number("part"))
                high = w.least(low + w.number("part"), w.number(f"n{tile.roles.inner[0]}"))
                self._chunk(low, high, chunk)
        else:
            self._chunk(ZERO, w.number(f"n{tile.roles.inner[0]}"), None)
        self._write_outputs()
        outputs = range(w.inputs, len(self._loops.operands))
        read = self._operands([*self._left, *self._right, *self._outputs])
        return self._finish(self._loops.group.name, [*read, *outputs])

    def _reserve(self) -> None:
        """Make room in an item's memory."""
        w, tile = self.w, self._tile
        if tile.copied:
            w.emit(Shared("a", self._dtype, len(self._left) * tile.rows * (tile.depth + GAP)))
        w.emit(Shared("t", self._dtype, tile.rows * tile.room))

    def _chunk(self, low: Expression, high: Expression, chunk: Expression | None) -> None:
        """Write what is done for a part of the inner elements."""
        w, tile = self.w, self._tile
        if tile.copied:
            self._copy_rows(low, high)
        self._prepare_rows(low, high)
        # The columns of a turn are far apart: each is read after its neighbour, as memory lies.
        count = w.let((self._end - self._first) + (tile.columns - 1))
        turns, _ = w.divided(count, number(tile.columns))
        with w.loop(None, ZERO, turns) as turn:
            places = [w.let(turn + turns * at) if at else turn for at in range(tile.columns)]
            self._across(places, low, high, chunk)

    def _prepare_rows(self, low: Expression, high: Expression) -> None:
        """Write what is done with the rows of a chunk before all columns."""

    def _copy_rows(self, low: Expression, high: Expression) -> None:
        w, tile, inner = self.w, self._tile, self._tile.roles.inner
        for own, root in enumerate(self._left):
            for row in range(tile.rows):
                start = number((own * tile.rows + row) * (tile.depth + GAP))

                def element(root: Expression = root, start: Expression = start) -> None:
                    place = self._place(low, w.value(ex.axis(inner[-1]))) + start
                    w.emit(Store("a", place, self._element(root)))

                with w.place(*w.places(tile.roles.rows, number(row))):
                    self._along(inner, (low, high), element, tile.runs)

    def _place(self, low: Expression, last: Expression) -> Expression:
        """Return the place of an inner element in a chunk; ``last``: along the last axis."""
        w, inner = self.w, self._tile.roles.inner
        if len(inner) == 1:
            return last + w.let(ZERO - low)
        return last + w.let(self._number_of(inner[:-1], low) * w.number(f"n{inner[-1]}"))

    def _rows(self, own: int, low: Expression, last: Expression) -> list[Expression]:
        """Return an element, or a vector, of each row of a product."""
        w, tile = self.w, self._tile
        place, axis = self._place(low, last), tile.roles.inner[-1]
        result = []
        for row in range(tile.rows):
            if tile.copied:
                start = (own * tile.rows + row) * (tile.depth + GAP)
                result.append(w.copy(load("a", self._dtype, place + start)))
            else:
                with w.place(*w.places(tile.roles.rows, number(row)), (axis, last)):
                    result.append(w.value(self._left[own]))
        return result

    def _add(self, name: str, a: Expression, b: Expression) -> None:
        total = variable(name, self._dtype)
        if self._dtype in dt.FLOATING:
            self.w.emit(Assign(name, Expression("fma", self._dtype, (a, b, total))))
        else:
            self.w.emit(Assign(name, total + a * b))

    def _across(
        self,
        places: Sequence[Expression],
        low: Expression,
        high: Expression,
        chunk: Expression | None,
    ) -> None:
        """Write the sums of columns at these places of the item's; lanes are inner elements."""
        w, tile = self.w, self._tile
        last = w.let(self._end - 1)
        columns = [
            w.places(tile.roles.columns, w.least(self._first + place, last)) for place in places
        ]
        zero = ex.constant(0, self._dtype)
        sums = [
            [w.declare(zero, tile.lanes) for _ in range(tile.rows)] for _ in range(tile.columns)
        ]
        self._add_columns(sums, columns, low, high)
        for place, names in zip(places, sums, strict=True):
            for row, name in enumerate(names):
                own = w.let(place + row * tile.room)
                self._keep(own, self._sum_of_lanes(name), chunk)

    def _add_columns(
        self,
        sums: Sequence[Sequence[str]],
        columns: Sequence[Sequence[tuple[int, Expression]]],
        low: Expression,
        high: Expression,
    ) -> None:
        """Add the products of a chunk to the sums of each column and row."""
        w, tile, inner = self.w, self._tile, self._tile.roles.inner

        def terms(last: Expression) -> None:
            self._add_vectors(sums, columns, low, last)

        def innermost() -> None:
            stop = w.number(f"n{inner[-1]}")
            start, stop = (low, high) if len(inner) == 1 else (ZERO, stop)
            step = tile.vectors * tile.lanes
            middle = w.let(start + ((stop - start) & -step)) if tile.rest else stop
            with w.loop(None, start, middle, step=step, lanes=tile.lanes, whole=True) as at:
                for vector in range(tile.vectors):
                    terms(at + vector * tile.lanes if vector else at)
            if tile.rest:
                with w.loop(None, middle, stop, step=tile.lanes, lanes=tile.lanes) as at:
                    terms(at)

        if len(inner) > 1:
            self._along(inner[:-1], (low, high), innermost)
        else:
            innermost()

    def _add_vectors(
        self,
        sums: Sequence[Sequence[str]],
        columns: Sequence[Sequence[tuple[int, Expression]]],
        low: Expression,
        last: Expression,
    ) -> None:
        """Add the products of vectors of inner elements, from ``last`` on along the last axis."""
        w = self.w
        for own, right in enumerate(self._right):
            rows = self._rows(own, low, last)
            for names, places in zip(sums, columns, strict=True):
                with w.place(*places, (self._tile.roles.inner[-1], last)):  # the lanes' axis last
                    b = self._element(right)
                for name, a in zip(names, rows, strict=True):
                    self._add(name, a, b)

    def _sum_of_lanes(self, name: str) -> Expression:
        w, total = self.w, variable(name, self._dtype)
        for _ in range(self._tile.lanes.bit_length() - 1):
            halves = [w.let(Expression("half", self._dtype, (total,), at)) for at in (0, 1)]
            total = w.let(halves[0] + halves[1])
        return total

    def _keep(self, place: Expression, total: Expression, chunk: Expression | None) -> None:
        """Add a sum to that of the chunks before."""
        w = self.w
        if chunk is not None:
            before = w.copy(load("t", self._dtype, place))
            is_first = ex.apply("equal", chunk, ZERO)
            total = w.let(ex.where(is_first, total, total + before))
        w.emit(Store("t", place, total))

    def _along_columns(self) -> None:
        """Write the sums of an item's columns, whose lanes are columns."""
        w, tile, inner = self.w, self._tile, self._tile.roles.inner
        zero = ex.constant(0, self._dtype)
        with w.loop(None, ZERO, number(tile.rows * tile.room)) as at:
            w.emit(Store("t", at, zero))
        length = w.number(f"n{inner[-1]}")

        def innermost() -> None:
            middle = w.let(length & -tile.vectors) if tile.rest else length
            with w.loop(None, ZERO, middle, step=tile.vectors) as at:
                self._add_rows([w.let(at + which) for which in range(tile.vectors)])
            if tile.rest:
                with w.loop(None, middle, length) as at:
                    self._add_rows([at])

        self._along(inner[:-1], None, innermost)

    def _add_rows(self, places: Sequence[Expression]) -> None:
        """Add the products of some inner elements, at places along the last axis, to the sums."""
        w, tile, last = self.w, self._tile, self._tile.roles.inner[-1]
        (axis,) = tile.roles.columns
        start = w.let(ZERO - self._first)
        middle = w.let(self._first + ((self._end - self._first) & -tile.lanes))
        rows = []
        for at in places:
            for own in range(len(self._left)):
                elements = []
                for row in range(tile.rows):
                    with w.place(*w.places(tile.roles.rows, number(row)), (last, at)):
                        elements.append(self._element(self._left[own]))
                rows.append((at, self._right[own], elements))

        def add(column: Expression) -> None:
            # From 0: so that fewer roundings follow one another.
            sums = [w.declare(ex.constant(0, self._dtype)) for _ in range(tile.rows)]
            for at, right, elements in rows:
                with w.place((last, at), (axis, column)):
                    b = self._element(right)
                for name, a in zip(sums, elements, strict=True):
                    self._add(name, a, b)
            for row, name in enumerate(sums):
                place = column + (start + row * tile.room)
                before = w.copy(load("t", self._dtype, place))
                w.emit(Store("t", place, before + variable(name, self._dtype)))

        with w.loop(
            None, self._first, middle, step=tile.lanes, lanes=tile.lanes, whole=True
        ) as at:
            add(at)
        with w.loop(None, middle, self._end) as at:
            add(at)

    def _write_outputs(self) -> None:
        w, tile = self.w, self._tile
        for row in range(tile.rows):
            with w.loop(None, self._first, self._end) as column:
                w.bind_all(tile.roles.columns, column)
                with w.place(*w.places(tile.roles.rows, number(row))):
                    place = w.let((column - self._first) + row * tile.room)
                    self._write_element(w.copy(load("t", self._dtype, place)))
