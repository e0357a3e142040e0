"""Products on devices whose work-items are neighbours: a work-group computes a tile.

Step by step along the inner axes, its work-items bring parts of both factors into shared memory,
neighbours reading neighbours. Then each multiplies its own rows and columns in variables, while
what the next step needs is on its way. Windows, gathered elements and conversions are computed as
elements are brought. Behind the end, rows and columns are those at the end, and inner elements 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.group_shapes import TERMS, VECTOR, distance
from tensorplug_loops.schedule.panels import Panels, number
from tensorplug_loops.schedule.products import (
    inner_operand,
)
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import (
    Array,
    Assign,
    Barrier,
    Shared,
    Store,
    item,
    load,
    member,
    variable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.group_shapes import GroupTile
    from tensorplug_loops.schedule.loops import Loops
    from tensorplug_loops.statements import Kernel


class Side(NamedTuple):
    """How one factor's part is brought into ``array``; ``which``: 0 or 1.

    ``plain``: the operand, if inner elements have one distance. For each element that a work-item
    brings: ``starts``, its axes' places, or where it would lie without the inner ones; ``inner``,
    which of a step's inner elements it is; ``rooms``, where in the array; ``next``, a variable.
    ``size``: how many elements of the tile there are.
    """

    which: int
    array: str
    plain: int | None
    size: int
    starts: list[tuple[Expression | None, list[tuple[int, Expression]]]]
    inner: list[Expression]
    rooms: list[Expression]
    next: list[str]


class GroupTiles(Panels):
    """Writes the kernel of one product."""

    def __init__(self, loops: Loops, machine: Machine, tile: GroupTile) -> None:
        super().__init__(loops, machine, tile.roles)
        self._tile = tile

    def write(self) -> tuple[Kernel, list[int]]:
        """Return the kernel, and the numbers of its arrays: of operands; -1 is that of slices."""
        w, tile, shape = self._begin(), self._tile, self._tile.shape
        for name, length in (("a", shape.rows), ("b", shape.columns)):
            w.emit(Shared(name, self._dtype, shape.depth * distance(length)))
        self._member = w.let(member())
        self._own = w.divided(self._member, number(shape.columns // shape.wide))
        self._begin_tile()
        sides = [self._side(which) for which in (0, 1)]
        zero, own = ex.constant(0, self._dtype), range(shape.high * shape.wide)
        self._sums = [[w.declare(zero) for _ in own] for _ in range(tile.levels)]
        self._fetch(sides, self._begins)
        with w.loop(None, self._begins, self._end, step=shape.depth) as start:
            self._step(sides, start)
        w.emit(Barrier())  # before sums lie where the columns' factor did
        self._write()
        return self._finish_tile()

    def _begin_tile(self) -> None:
        """Write which tile an item computes, and of which inner elements."""
        w, tile, shape = self.w, self._tile, self._tile.shape
        rest, column = w.divided(w.let(item()), w.number("tiles_n"))
        rest, row = w.divided(rest, w.number("tiles_m"))
        self._first = w.let(row * shape.rows), w.let(column * shape.columns)
        part = rest
        for axis in reversed(tile.roles.batch):
            part, at = w.divided(part, w.number(f"n{axis}"))
            w.bind(axis, at)
        self._slice = part
        self._begins = w.let(part * w.number("span"))
        self._end = w.least(self._begins + w.number("span"), w.number("inner"))

    def _finish_tile(self) -> tuple[Kernel, list[int]]:
        """Return the kernel of what is written."""
        w, tile = self.w, self._tile
        name, more = self._loops.group.name, []
        read = self._operands(self._factors)
        if tile.slices:
            name, more = f"{name}: slices", [(Array("c", self._dtype, written=True), -1)]
        else:
            outputs = range(w.inputs, len(self._loops.operands))
            read = [*self._operands([*self._factors, *self._outputs]), *outputs]
        return self._finish(name, read, *more, group_size=tile.shape.members)

    # Bringing elements -----------------------------------------------------------------------

    def _side(self, which: int) -> Side:
        """Return how a factor is brought, having computed what stays the same."""
        w, roles, shape = self.w, self._tile.roles, self._tile.shape
        axes, length, total = (
            (roles.columns, shape.columns, "columns")
            if which
            else (roles.rows, shape.rows, "rows")
        )
        plain = inner_operand(self._loops, roles, right=bool(which))
        side = Side(which, "ab"[which], plain, length * shape.depth, [], [], [], [])
        along_inner = self._are_neighbours(self._factors[which], roles.inner[-1])
        fast = shape.depth if along_inner else length
        even, last = shape.members % fast == 0, w.let(w.number(total) - 1)
        slow, quick = w.divided(self._member, number(fast))
        known: dict[int, tuple[Expression | None, list[tuple[int, Expression]]]] = {}
        for at in range(-(-side.size // shape.members)):
            if even:
                both = w.let(slow + at * (shape.members // fast)) if at else slow, quick
            else:
                both = w.divided(w.let(self._member + at * shape.members), number(fast))
            own, inner = both if along_inner else both[::-1]
            if id(own) not in known:
                places = w.places(axes, w.least(self._first[which] + own, last))
                known[id(own)] = self._start(plain, places), places
            side.starts.append(known[id(own)])
            side.inner.append(inner)
            side.rooms.append(w.let(inner * distance(length) + own))
            side.next.append(w.declare(ex.constant(0, self._dtype)))
        return side

    def _start(self, plain: int | None, places: list[tuple[int, Expression]]) -> Expression | None:
        """Return where an operand's first inner element lies."""
        if plain is None:
            return None
        w, inner = self.w, self._tile.roles.inner
        with w.place(*places, *((axis, ZERO) for axis in inner)):
            return w.let(w.offset(plain))

    def _fetch(self, sides: Sequence[Side], start: Expression) -> None:
        """Read the elements of a step: behind the end they are 0."""
        w, roles, zero = self.w, self._tile.roles, ex.constant(0, self._dtype)
        last = w.let(self._end - 1)
        for side in sides:
            known: dict[int, tuple[Expression, Expression, list[tuple[int, Expression]]]] = {}
            each = zip(side.starts, side.inner, side.next, strict=True)
            for (base, places), along, name in each:
                if id(along) not in known:
                    inner = w.let(start + along)
                    own = w.least(inner, last)
                    digits = w.places(roles.inner, own) if base is None else []
                    known[id(along)] = own, w.let(inner < self._end), digits
                own, inside, digits = known[id(along)]
                if base is None:
                    value = self._value(side, [*places, *digits])
                else:
                    value = self._load(side, base, own)
                w.emit(Assign(name, w.here(ex.where(inside, value, zero))))

    def _value(self, side: Side, places: Sequence[tuple[int, Expression]]) -> Expression:
        """Compute a factor's element at a place."""
        w = self.w
        with w.place(*places):
            value = w.value(self._factors[side.which])
            return w.here(self._lowering.converter.cast(value, self._given, self._dtype))

    def _load(self, side: Side, base: Expression, inner: Expression) -> Expression:
        """Read an element of an operand whose inner elements have one distance."""
        w, k = self.w, side.plain
        assert k is not None
        by = self._inner_step(k)
        held = self._lowering.converter.held(self._given)
        value = w.copy(load(w.array(k), held, w.let(base + inner * by)))
        return w.here(self._lowering.converter.cast(value, self._given, self._dtype))

    # Multiplying -----------------------------------------------------------------------------

    def _step(self, sides: Sequence[Side], start: Expression) -> None:
        """Write what is done for the inner elements of a step."""
        w, shape = self.w, self._tile.shape
        w.emit(Barrier())  # before what the last step reads is written again
        for side in sides:
            for at, (room, name) in enumerate(zip(side.rooms, side.next, strict=True)):
                put = Store(side.array, room, variable(name, self._dtype))
                if (at + 1) * shape.members <= side.size:
                    w.emit(put)
                    continue
                exists = self._member + at * shape.members < side.size
                with w.when(w.here(exists)):
                    w.emit(put)
        w.emit(Barrier())
        following = w.let(start + shape.depth)
        with w.when(w.let(following < self._end)):
            self._fetch(sides, following)
        with w.loop(None, ZERO, number(shape.depth)) as inner:
            self._multiply(inner)
        for level, terms in zip(range(1, self._tile.levels), TERMS, strict=False):
            done = ex.apply("equal", (following - self._begins) & (terms - 1), 0)
            with w.when(w.here(done)):
                for name, total in zip(*self._sums[level - 1 : level + 1], strict=True):
                    value = variable(total, self._dtype) + variable(name, self._dtype)
                    w.emit(Assign(total, value))
                    w.emit(Assign(name, ex.constant(0, self._dtype)))

    def _multiply(self, at: Expression) -> None:
        """Add the products of one inner element."""
        w, shape, dtype = self.w, self._tile.shape, self._dtype
        sides = ("a", shape.rows, shape.high), ("b", shape.columns, shape.wide)
        factors = []
        for (name, length, count), own in zip(sides, self._own, strict=True):
            row = w.let(at * distance(length))
            places = [position(length, count, own, k) for k in range(count)]
            factors.append([w.copy(load(name, dtype, w.here(row + each))) for each in places])
        names = iter(self._sums[0])
        for a in factors[0]:
            for b in factors[1]:
                total = variable(name := next(names), dtype)
                if dtype in dt.FLOATING:
                    w.emit(Assign(name, Expression("fma", dtype, (a, b, total))))
                else:
                    w.emit(Assign(name, w.here(total + a * b)))

    # Writing ---------------------------------------------------------------------------------

    def _write(self) -> None:
        """Write the outputs of a tile, or the sums of a slice."""
        w, roles, shape = self.w, self._tile.roles, self._tile.shape
        names = iter(zip(*self._sums, strict=True))
        for i in range(shape.high):
            for j in range(shape.wide):
                first, *rest = [variable(name, self._dtype) for name in next(names)]
                for each in rest:
                    first = w.let(first + each)
                w.emit(Store("b", self._member + j * shape.members, w.copy(first)))
            row = w.let(self._first[0] + position(shape.rows, shape.high, self._own[0], i))
            with w.when(w.let(row < w.number("rows"))), w.place(*w.places(roles.rows, row)):
                self._write_row(self._member)

    def _write_row(self, base: Expression) -> None:
        """Write a work-item's elements of a row, whose axes have values; ``base``: its first."""
        w, roles, shape, dtype = self.w, self._tile.roles, self._tile.shape, self._dtype
        beside = _vector(shape.wide)
        with w.loop(None, ZERO, number(shape.wide)) as at:
            far, near = w.divided(at, number(beside))
            across = shape.columns // shape.wide
            place = far * (beside * across) + near + self._own[1] * beside
            column = w.let(self._first[1] + place)
            with w.when(w.let(column < w.number("columns"))):
                total = w.copy(load("b", dtype, w.let(base + at * shape.members)))
                w.bind_all(roles.columns, column)
                if self._tile.slices:
                    self._write_part("c", self._slice, total)
                else:
                    self._write_element(total)


def _vector(count: int) -> int:
    return VECTOR if count % VECTOR == 0 else 1


def position(length: int, count: int, own: Expression, k: int) -> Expression:
    """Return where the element ``k`` of ``count`` lies in a tile: neighbours' lie side by side."""
    beside = _vector(count)
    far, near = divmod(k, beside)
    return own * beside + (far * beside * (length // count) + near)
