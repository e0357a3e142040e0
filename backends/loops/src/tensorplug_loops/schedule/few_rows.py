"""Products of few rows: each element of the other factor is read once, and used where it lies.

Such a product takes as long as reading its larger factor, the *columns'*, whose elements are
converted, unpacked and scaled in registers. An item takes a run of columns. It copies the rows to
its own memory unless they can be read where they lie, in chunks of the inner axes, after each of
which the sums are added to others.

If the columns' elements lie side by side along the last inner axis, lanes are inner elements, and
an item reads some columns at the same time. Otherwise lanes are columns, and an item adds some
inner elements of all its columns at the same time to sums in its own memory: it reads rows of the
factor in long pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.recording import plain
from tensorplug_loops.schedule.panels import Panels, number
from tensorplug_loops.schedule.products import Roles, accumulated, length_along, swapped
from tensorplug_loops.schedule.structures import parameters_in
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import Assign, Kernel, Shared, Store, item, load, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops

_FEW: Final = 8  # rows, at most
_LEAST: Final = 16  # columns and inner elements; of fewer, the product is soon done
_WIDE: Final = 32  # registers, from which on there may be twice the sums
_SUMS: Final = 8  # vectors of sums that are in registers
_COLUMNS: Final = 4  # read at the same time, at most
_VECTORS: Final = 4  # of a column, one after the other in a turn of a loop
_SIZE: Final = 128  # columns of an item, at most
_COPIED: Final = 64  # likewise, at least, where it copies rows
_LONG: Final = 1024  # likewise, where lanes are columns
_SUMMED: Final = 8  # inner elements that are added at the same time, where lanes are columns
_ADDED: Final = 8192  # likewise, one after the other
_ITEMS: Final = 16  # that keep cores busy
_DEPTH: Final = 8192  # elements of rows in an item's memory
_GAP: Final = 16  # elements between rows there, which a cache would keep in one set otherwise
_NEAR: Final = 2  # rows, more of which are copied for the same reason
_TERMS: Final = 512  # of a lane's sum, before it is added to another one


@dataclass(frozen=True, slots=True)
class FewRows:
    """How a product of few rows is computed.

    ``rows``: all of them. ``lanes``: of vectors. ``across``: whether they are inner elements.
    ``columns``: of a turn. ``vectors``: of the last inner axis in a turn, or elements if lanes are
    columns. ``rest``: whether fewer remain there. ``copied``: whether rows are copied, and
    ``runs``: by so many lanes. ``chunked``: whether there are several chunks. ``room``: for sums.
    """

    roles: Roles
    rows: int
    lanes: int
    across: bool
    columns: int
    vectors: int
    rest: bool
    copied: bool
    runs: int
    depth: int
    chunked: bool
    room: int


def tile_of(loops: Loops, roles: Roles, machine: Machine) -> FewRows | None:
    """Return how a product is computed, and set the numbers of its kernel.

    None if another schedule suits it better.
    """
    m, n, k = (length_along(loops, axes) for axes in (roles.rows, roles.columns, roles.inner))
    if m > n:
        roles, m, n = swapped(roles), n, m
    if m > _FEW or n < _LEAST or k < _LEAST or not machine.vector_bytes or not roles.columns:
        return None
    dtype = accumulated(loops.roots[0].dtype)
    most = max(1, min(machine.lanes, machine.vector_bytes // dtype.itemsize))
    last = roles.inner[-1]
    factors = loops.roots[: _count(loops)]
    steps = [_steps(loops, factors[which::2], last) for which in (roles.left, roles.right)]
    across = 1 in steps[1]
    axis = last if across else roles.columns[-1]
    near = _steps(loops, factors[roles.right :: 2], axis) <= {0, 1}
    length = loops.lengths[axis]
    if not near or (not across and len(roles.columns) > 1):
        return None
    lanes = plain(min(most, 1 << (length.bit_length() - 1)))
    if lanes < min(most, _COLUMNS):
        return None
    rows = plain(m)
    sums = _SUMS * (2 if machine.registers >= _WIDE else 1)
    columns = max(1, min(_COLUMNS, sums // rows))
    vectors, inside = 1, length_along(loops, roles.inner[1:])
    of_last = loops.lengths[last]
    most = _VECTORS if across else _SUMMED if rows <= _NEAR else _SUMMED // 2
    while vectors < most and of_last % (2 * vectors * (lanes if across else 1)) == 0:
        vectors *= 2
    depth, part, runs, copied = 0, loops.lengths[roles.inner[0]], 1, False
    if across:
        copied = m > _NEAR or not _in_place(loops, factors[roles.left :: 2]) or steps[0] != {1}
        runs = lanes if copied and steps[0] == {1} else 1
        depth = _DEPTH // (rows * (len(factors) // 2))
        terms = _TERMS * lanes
        if inside > min(depth, terms):
            return None
        most = (min(terms, depth) if copied else terms) // inside
        if part > most:  # in turns of the loop, as they ``rest`` counts them
            part = most if len(roles.inner) > 1 else most & -(vectors * lanes)
    elif k > _ADDED:
        return None
    batch = length_along(loops, roles.batch)
    room = _SIZE if across else _LONG // (1 if rows <= _NEAR else 2)
    turn = columns if across else lanes
    size = max(turn, _COPIED if copied else 1, min(room, -(-n * batch // _ITEMS)))
    chunks = -(-loops.lengths[roles.inner[0]] // part)
    loops.values.update(
        rows=m,
        columns=n,
        inner=k,
        size_n=size,
        groups_n=-(-n // size),
        part=part,
        chunks=chunks,
    )
    return FewRows(
        roles,
        rows,
        lanes,
        across,
        columns,
        vectors,
        bool(of_last % (vectors * (lanes if across else 1))),
        copied,
        runs,
        depth,
        chunks > 1,
        room + columns,
    )


def _count(loops: Loops) -> int:
    """Return how many factors there are: two for each product that is added up."""
    return len(loops.group.reductions)


def _steps(loops: Loops, roots: Sequence[Expression], axis: int) -> set[int]:
    """Return the distances along an axis of what values are read from; 2 for any other one."""
    operands = [loops.operands[k] for k in parameters_in(tuple(roots))]
    steps = [each.offset.steps[axis] for each in operands]
    found = {plain(step) if 0 <= step <= 1 else 2 for step in steps}
    return {2} if any(at.rests for each in operands for at in each.linears()) else found


def _in_place(loops: Loops, roots: Sequence[Expression]) -> bool:
    """Return whether rows need no conversion."""
    return all(
        root.op == "parameter"
        and root.dtype is accumulated(root.dtype)
        and not loops.operands[int(root.value)].checks  # type: ignore[arg-type]  # a number
        for root in roots
    )


class FewRowsKernel(Panels):
    """Writes the kernel of a product of few rows."""

    def __init__(self, loops: Loops, machine: Machine, tile: FewRows) -> None:
        super().__init__(loops, machine, tile.roles)
        self._tile = tile
        count = _count(loops)
        self._left = loops.roots[tile.roles.left : count : 2]
        self._right = loops.roots[tile.roles.right : count : 2]
        self._outputs = loops.roots[count:]

    def write(self) -> tuple[Kernel, list[int]]:
        """Return the kernel, and the numbers of its arrays, which are those of the operands."""
        w, tile = self._begin(), self._tile
        if tile.copied:
            w.emit(Shared("a", self._dtype, len(self._left) * tile.rows * (tile.depth + _GAP)))
        w.emit(Shared("t", self._dtype, tile.rows * tile.room))
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

    def _chunk(self, low: Expression, high: Expression, chunk: Expression | None) -> None:
        """Write what is done for a part of the inner elements."""
        w, tile = self.w, self._tile
        if tile.copied:
            self._copy_rows(low, high)
        # The columns of a turn are far apart: each is read after its neighbour, as memory lies.
        count = w.let((self._end - self._first) + (tile.columns - 1))
        turns, _ = w.divided(count, number(tile.columns))
        with w.loop(None, ZERO, turns) as turn:
            places = [w.let(turn + turns * at) if at else turn for at in range(tile.columns)]
            self._across(places, low, high, chunk)

    def _copy_rows(self, low: Expression, high: Expression) -> None:
        w, tile, inner = self.w, self._tile, self._tile.roles.inner
        for own, root in enumerate(self._left):
            for row in range(tile.rows):
                start = number((own * tile.rows + row) * (tile.depth + _GAP))

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
                start = (own * tile.rows + row) * (tile.depth + _GAP)
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
        w, tile, inner = self.w, self._tile, self._tile.roles.inner
        last = w.let(self._end - 1)
        columns = [
            w.places(tile.roles.columns, w.least(self._first + place, last)) for place in places
        ]
        zero = ex.constant(0, self._dtype)
        sums = [
            [w.declare(zero, tile.lanes) for _ in range(tile.rows)] for _ in range(tile.columns)
        ]
        length = w.number(f"n{inner[-1]}")

        def terms(last: Expression) -> None:
            self._add_vectors(sums, columns, low, last)

        def innermost() -> None:
            start, stop = (low, high) if len(inner) == 1 else (ZERO, length)
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
        for place, names in zip(places, sums, strict=True):
            for row, name in enumerate(names):
                own = w.let(place + row * tile.room)
                self._keep(own, self._sum_of_lanes(name), chunk)

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
