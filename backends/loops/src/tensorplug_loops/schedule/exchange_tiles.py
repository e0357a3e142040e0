"""Products where work-items read their neighbours' variables: a few of them compute a tile.

Each holds some columns of all rows of the tile. Of the rows' factor, a work-item reads only every
so many rows, and takes the others from its neighbours. So there is neither shared memory nor a
barrier, which cost a processor that acts as a GPU more than the multiplications. Behind the end,
rows and columns are those at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.group_shapes import TERMS
from tensorplug_loops.schedule.group_tiles import GroupTiles, Side, position
from tensorplug_loops.schedule.panels import number
from tensorplug_loops.schedule.products import inner_operand
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import Assign, Shared, Store, broadcast, member, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_loops.statements import Kernel

_SUMS: Final = "b"  # the array from which a work-item writes its sums


class ExchangeTiles(GroupTiles):
    """Writes the kernel of one product."""

    def write(self) -> tuple[Kernel, list[int]]:
        """Return the kernel, and the numbers of its arrays: of operands; -1 is that of slices."""
        w, shape = self._begin(), self._tile.shape
        w.emit(Shared(_SUMS, self._dtype, shape.rows * shape.columns))
        self._member = w.let(member())
        self._own = ZERO, self._member
        self._begin_tile()
        sides = [self._side(which) for which in (0, 1)]
        self._sums = [self._declare()]
        self._add(sides, self._tile.levels - 1, self._begins, self._end, self._sums[0])
        self._write()
        return self._finish_tile()

    def _declare(self) -> list[str]:
        shape, zero = self._tile.shape, ex.constant(0, self._dtype)
        return [self.w.declare(zero) for _ in range(shape.high * shape.wide)]

    def _side(self, which: int) -> Side:
        """Return where the rows, or columns, lie of which a work-item reads elements."""
        w, roles, shape = self.w, self._tile.roles, self._tile.shape
        axes, total = (roles.columns, "columns") if which else (roles.rows, "rows")
        plain = inner_operand(self._loops, roles, right=bool(which))
        side = Side(which, "", plain, 0, [], [], [], [])
        last = w.let(w.number(total) - 1)
        if which:
            own = [position(shape.columns, shape.wide, self._member, k) for k in range(shape.wide)]
        else:
            own = [self._member + at for at in range(0, shape.high, shape.members)]
        for each in own:
            places = w.places(axes, w.least(self._first[which] + each, last))
            side.starts.append((self._start(plain, places), places))
        return side

    def _add(
        self,
        sides: Sequence[Side],
        level: int,
        start: Expression,
        end: Expression,
        totals: Sequence[str],
    ) -> None:
        """Add the products of inner elements to sums: at a level above 0, sums of so many."""
        w, depth = self.w, self._tile.shape.depth
        if not level:
            if any(side.plain is None for side in sides):  # else a longer text saves nothing
                middle = w.let(start + ((end - start) & -depth))
                with w.loop(None, start, middle, step=depth) as at:
                    self._add_products(sides, at, depth, totals)
                start = middle
            with w.loop(None, start, end) as at:
                self._add_products(sides, at, 1, totals)
            return
        terms = TERMS[level - 1]
        with w.loop(None, start, end, step=terms) as begin:
            names = self._declare()
            self._add(sides, level - 1, begin, w.least(begin + terms, end), names)
            for total, name in zip(totals, names, strict=True):
                value = variable(total, self._dtype) + variable(name, self._dtype)
                w.emit(Assign(total, value))

    def _add_products(
        self, sides: Sequence[Side], at: Expression, count: int, totals: Sequence[str]
    ) -> None:
        """Add the products of inner elements that follow one another."""
        w, dtype, shape = self.w, self._dtype, self._tile.shape
        digits: list[tuple[int, Expression]] = []
        for k in range(count):
            here = w.let(at + k) if k else at
            if any(side.plain is None for side in sides):
                digits = self._following(digits) if k else self._digits(at)
            rows, columns = (
                [self._read(side, *s, here, digits) for s in side.starts] for side in sides
            )
            names = iter(totals)
            for i in range(shape.high):
                far, near = divmod(i, shape.members)
                a = w.let(broadcast(rows[far], near))
                for b in columns:
                    total = variable(name := next(names), dtype)
                    if dtype in dt.FLOATING:
                        w.emit(Assign(name, Expression("fma", dtype, (a, b, total))))
                    else:
                        w.emit(Assign(name, w.here(total + a * b)))

    def _read(
        self,
        side: Side,
        base: Expression | None,
        places: Sequence[tuple[int, Expression]],
        inner: Expression,
        digits: Sequence[tuple[int, Expression]],
    ) -> Expression:
        if base is None:
            return self.w.let(self._value(side, [*places, *digits]))
        return self._load(side, base, inner)

    def _digits(self, at: Expression) -> list[tuple[int, Expression]]:
        """Return the places along the inner axes, the last one first."""
        return self.w.places(self._tile.roles.inner, at)

    def _following(self, digits: Sequence[tuple[int, Expression]]) -> list[tuple[int, Expression]]:
        """Return the places of the next inner element: counting costs less than dividing."""
        w, following, carry = self.w, list[tuple[int, Expression]](), number(1)
        for axis, digit in digits:
            own = w.let(digit + carry)
            if axis != digits[-1][0]:
                ends = w.let(ex.apply("equal", own, w.number(f"n{axis}")))
                own, carry = (
                    w.let(ex.where(ends, *each)) for each in ((ZERO, own), (number(1), ZERO))
                )
            following.append((axis, own))
        return following

    def _write(self) -> None:
        """Write the outputs of a tile, or the sums of a slice."""
        w, roles, shape = self.w, self._tile.roles, self._tile.shape
        apart = shape.wide * shape.members
        for n, name in enumerate(self._sums[0]):
            place = w.let(self._member + n * shape.members)
            w.emit(Store(_SUMS, place, variable(name, self._dtype)))
        with w.loop(None, ZERO, number(shape.rows)) as at:
            row = w.let(self._first[0] + at)
            with w.when(w.let(row < w.number("rows"))), w.place(*w.places(roles.rows, row)):
                self._write_row(w.let(self._member + at * apart))
