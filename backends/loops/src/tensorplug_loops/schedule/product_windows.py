"""Rows of a product that are windows, read where they lie.

A window's elements outside of the array are 0, and add nothing. So the loop along the last inner
axis is cut: in its middle, all rows of a tile lie in the array, and nothing is tested.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import reduce
from typing import TYPE_CHECKING

from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.panels import number
from tensorplug_loops.schedule.writer import ZERO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Expression
    from tensorplug_loops.schedule.writer import Writer

    Place = tuple[int, Expression]


class WindowRows:
    """The rows of one panel: an offset for each, and the indices that are checked.

    ``places``: of each row, along the axes of the rows. ``inner``: the axes along which products
    are added. What the inner axes add to an index is the same for all rows.
    """

    def __init__(
        self, w: Writer, k: int, places: Sequence[Sequence[Place]], inner: Sequence[int]
    ) -> None:
        self._w, self._k, self._inner, self.array = w, k, inner, w.array(k)
        operand = w.loops.operands[k]
        self._checks = [j for j, check in enumerate(operand.checks) if not check.holds]
        self._numbers = [0, *(1 + j for j in self._checks)]
        self._linears = [operand.offset, *(operand.checks[j].at for j in self._checks)]
        self.offsets: list[Expression] = []
        indices: list[list[Expression]] = []
        for own in places:
            with w.place(*own, *((axis, ZERO) for axis in inner)):
                self.offsets.append(w.let(w.offset(k)))
                indices.append([w.let(w.index(k, j)) for j in self._checks])
        self._indices = list(zip(*indices, strict=True))
        self._ends = [(reduce(w.least, each), reduce(w.greatest, each)) for each in self._indices]

    def add_up(
        self,
        split: int,
        bounds: tuple[Expression, Expression],
        add: Callable[[Expression, Sequence[tuple[Expression, Expression | None]]], None],
    ) -> None:
        """Write the loops along the inner axes from ``split`` on; those before have values.

        ``bounds``: along the axis ``split``. ``add``: writes what is done for an inner element,
        from its number, and from each row's offset and condition, None where all are inside.
        """
        w, sums, at = self._w, [ZERO] * len(self._linears), ZERO
        for axis in self._inner[:split]:
            sums = self._added(sums, axis)
        *outer, last = self._inner[split:]
        with ExitStack() as stack:
            for axis in outer:
                place = stack.enter_context(w.loop(axis, *bounds))
                at, sums = self._number(at, axis, place, bounds[0]), self._added(sums, axis)
                bounds = ZERO, w.number(f"n{self._inner[self._inner.index(axis) + 1]}")

            def along(low: Expression, high: Expression, *, inside: bool) -> None:
                with w.loop(last, low, high) as place:
                    own = self._number(at, last, place, bounds[0])
                    offset, *indices = self._added(sums, last)
                    if inside:
                        add(own, [(w.let(each + offset), None) for each in self.offsets])
                    else:
                        self._add_some(indices, lambda rows: add(own, rows), offset)

            if not self._checks:
                along(*bounds, inside=True)
                return
            start, stop = self._all_inside(sums[1:], last, bounds)
            along(start, stop, inside=True)
            with w.loop(None, ZERO, number(2)) as side:
                before = w.let(ex.apply("equal", side, ZERO))
                low = w.let(ex.where(before, bounds[0], stop))
                high = w.let(ex.where(before, start, bounds[1]))
                along(low, high, inside=False)

    def _number(self, at: Expression, axis: int, place: Expression, low: Expression) -> Expression:
        w = self._w
        own = place if low is ZERO else w.let(place - low)
        return own if at is ZERO else w.let(at * w.number(f"n{axis}") + own)

    def _added(self, sums: Sequence[Expression], axis: int) -> list[Expression]:
        """Return the offset and the indices, with what an axis adds to them."""
        w, result = self._w, []
        for total, linear, j in zip(sums, self._linears, self._numbers, strict=True):
            step = linear.steps[axis]
            if step == 0:
                result.append(total)
                continue
            own = w.value(ex.axis(axis))
            if step != 1:
                own = w.let(own * w.number(f"s{self._k}_{j}_{axis}"))
            result.append(own if total is ZERO else w.let(total + own))
        return result

    def _all_inside(
        self, indices: Sequence[Expression], axis: int, bounds: tuple[Expression, Expression]
    ) -> tuple[Expression, Expression]:
        """Return between which places along the last axis all rows lie in the array."""
        w, (start, stop), conditions = self._w, bounds, []
        each = zip(self._checks, indices, self._ends, self._linears[1:], strict=True)
        for j, index, (least, most), linear in each:
            limit = w.number(f"l{self._k}_{j}")
            if linear.steps[axis] == 0:
                conditions += self._range(index + least, index + most, limit)
                continue
            first, end = (w.let(value) for value in (ZERO - least - index, limit - most - index))
            if linear.steps[axis] != 1:
                step = w.number(f"s{self._k}_{1 + j}_{axis}")
                first, end = (
                    w.divided(w.greatest(each, ZERO) + (step - 1), step)[0]
                    for each in (first, end)
                )
            start, stop = w.greatest(start, first), w.least(stop, end)
        start = w.least(start, bounds[1])
        if conditions:
            stop = w.here(ex.where(_all(conditions), stop, start))
        return start, w.greatest(start, stop)

    def _add_some(
        self,
        indices: Sequence[Expression],
        add: Callable[[Sequence[tuple[Expression, Expression | None]]], None],
        offset: Expression,
    ) -> None:
        """Write what is done where some rows may lie in the array."""
        w = self._w
        limits = [w.number(f"l{self._k}_{j}") for j in self._checks]
        own = list(zip(indices, limits, strict=True))
        some = [
            condition
            for (index, limit), (least, most) in zip(own, self._ends, strict=True)
            for condition in self._range(index + most, index + least, limit)
        ]
        with w.when(w.here(_all(some))):
            rows = []
            for at, start in enumerate(self.offsets):
                inside = [
                    condition
                    for (index, limit), of_rows in zip(own, self._indices, strict=True)
                    for condition in self._range(index + of_rows[at], index + of_rows[at], limit)
                ]
                rows.append((w.let(start + offset), w.here(_all(inside))))
            add(rows)

    @staticmethod
    def _range(low: Expression, high: Expression, limit: Expression) -> list[Expression]:
        return [ex.apply("less_equal", ZERO, low), ex.apply("less", high, limit)]


def _all(conditions: Sequence[Expression]) -> Expression:
    return reduce(lambda a, b: ex.apply("logical_and", a, b), conditions)
