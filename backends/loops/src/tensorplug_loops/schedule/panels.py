"""Panels of a product's factors: copies in the order in which tiles read them.

A panel is as high as a tile has rows, or as wide as its columns. Elements are computed while they
are copied, so windows, gathered elements and conversions cost nothing later. What lies behind the
end is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.schedule.products import accumulated, plain_operand
from tensorplug_loops.schedule.structures import parameters_in
from tensorplug_loops.schedule.writer import ZERO, Writer
from tensorplug_loops.statements import Array, Kernel, Store, item

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops
    from tensorplug_loops.schedule.products import Roles, Tile


def number(value: int) -> Expression:
    """Return a constant index."""
    return ex.constant(value, dt.int64)


class Panels:
    """Writes kernels of a product: what all of them need."""

    def __init__(self, loops: Loops, machine: Machine, roles: Roles) -> None:
        self._loops, self._machine = loops, machine
        self._given = loops.roots[0].dtype
        self._dtype = accumulated(self._given)
        self._lowering = Lowering(machine, loops.signs)
        loops.lowered(self._lowering.lower(loops.everything()))
        self._factors = loops.roots[roles.left], loops.roots[roles.right]
        self._outputs = loops.roots[2:]

    def _begin(self) -> Writer:
        self.w = Writer(self._loops, self._lowering)
        return self.w

    def _finish(
        self, name: str, read: Sequence[int], *more: tuple[Array, int], group_size: int = 1
    ) -> tuple[Kernel, list[int]]:
        """Return the kernel of these operands and other arrays: what is written comes last."""
        whole = self.w.kernel(name)
        arrays = [(each, k) for k, each in enumerate(whole.arrays) if k in read]
        arrays = sorted([*arrays, *more], key=lambda pair: pair[0].written)
        own = tuple(each for each, _ in arrays)
        kernel = Kernel(name, own, whole.numbers, whole.body, group_size)
        return kernel, [k for _, k in arrays]

    def _let_least(self, a: Expression, b: Expression) -> Expression:
        return self.w.let(ex.where(a < b, a, b))

    def _spread(self, axes: Sequence[int], number: Expression) -> None:
        """Bind axes to the place that a number means along all of them."""
        for axis, at in self._places(axes, number):
            self.w.bind(axis, at)

    def _places(self, axes: Sequence[int], number: Expression) -> list[tuple[int, Expression]]:
        w, places = self.w, []
        for axis in reversed(axes):
            if axis == axes[0]:
                places.append((axis, number))
            else:
                number, rest = w.divided(number, w.number(f"n{axis}"))
                places.append((axis, rest))
        return places

    def _write_element(self, total: Expression) -> None:
        """Write the outputs' elements of a sum: the axes that remain have values."""
        w = self.w
        cast = self._lowering.converter.cast(total, self._dtype, self._given)
        w.bind(("result", w.inputs), w.here(cast))
        values = [w.value(root) for root in self._outputs]
        for j, value in enumerate(values):
            k = w.inputs + j
            w.emit(Store(w.array(k), w.offset(k), value))

    def _are_neighbours(self, root: Expression, axis: int) -> bool:
        """Return whether what a value is read from lies side by side along an axis."""
        operands = self._loops.operands
        return any(operands[k].offset.steps[axis] == 1 for k in parameters_in((root,)))

    def _operands(self, roots: Sequence[Expression]) -> list[int]:
        """Return the inputs that values are read from, and their indices."""
        read: set[int] = set()
        pending = list(roots)
        while pending:
            new = {k for k in parameters_in((pending.pop(),)) if k < self.w.inputs} - read
            read |= new
            for k in new:
                pending += [
                    rest for at in self._loops.operands[k].linears() for _, rest in at.rests
                ]
        return sorted(read)


class Copies(Panels):
    """Writes what copies factors in the order in which a processor's tiles read them."""

    def __init__(self, loops: Loops, machine: Machine, tile: Tile) -> None:
        super().__init__(loops, machine, tile.roles)
        self._tile = tile
        self._plain = [
            None if packs else plain_operand(loops, tile.roles, right=bool(which))
            for which, packs in enumerate(tile.packs)
        ]

    def _copy_columns(self) -> tuple[Kernel, list[int]]:
        """Return the kernel that copies the columns' factor: an item takes a panel."""
        w, tile = self._begin(), self._tile
        own = w.let(item())
        batch, panel = w.divided(own, w.number("panels_n"))
        self._spread(tile.roles.batch, batch)
        base = w.let(own * (w.number("inner") * tile.columns))
        first = tile.roles.inner[0]
        self._copy(1, panel, "b", base, 0, (ZERO, w.number(f"n{first}")), w.number("inner"))
        return self._finish(
            f"{self._loops.group.name}: columns",
            self._operands([self._factors[1]]),
            (Array("b", self._dtype, written=True), -1),
        )

    def _copy(
        self,
        which: int,
        panel: Expression,
        array: str,
        base: Expression,
        split: int,
        bounds: tuple[Expression, Expression],
        depth: Expression,
    ) -> None:
        """Copy a panel of a factor, 0 or 1: for each of ``depth`` inner elements, a tile's own.

        If the tile has ``runs``, copy one row after the other, each as long as the tile is deep.
        ``bounds``: along the inner axis ``split``; those before it have values.
        """
        w, tile, roles = self.w, self._tile, self._tile.roles
        axes, width = (roles.columns, tile.columns) if which else (roles.rows, tile.rows)
        total = w.number("columns" if which else "rows")
        root, inner = self._factors[which], roles.inner[split:]
        first = w.let(panel * width)
        end = self._let_least(first + width, total)
        convert = self._lowering.converter.cast
        runs = 0 if which else tile.runs

        def element(own: Expression) -> None:
            """Store one of the panel's elements: the axes have values."""
            at = w.value(ex.axis(inner[0])) - bounds[0]
            for axis in inner[1:]:
                at = at * w.number(f"n{axis}") + w.value(ex.axis(axis))
            value = w.here(convert(w.value(root), self._given, self._dtype))
            place = (own - first) * tile.depth + at if runs else base + at * width + (own - first)
            w.emit(Store(array, place if w.lanes > 1 else w.let(place), value))

        def along_inner(rest: Sequence[int], body: Callable[[], None]) -> None:
            if not rest:
                body()
                return
            low, high = bounds if rest[0] == inner[0] else (ZERO, w.number(f"n{rest[0]}"))
            if runs < 0 and len(rest) == 1 < len(inner):
                for at in range(-runs):
                    with w.place(rest[0], number(at)):
                        body()
                return
            if runs > 1 and len(rest) == 1:
                middle = w.let(low + ((high - low) & -runs))
                with w.loop(rest[0], low, middle, step=runs, lanes=runs, whole=True):
                    body()
                low = middle
            with w.loop(rest[0], low, high):
                along_inner(rest[1:], body)

        if not runs and len(axes) == 1 and self._are_neighbours(root, axes[0]):

            def across() -> None:
                with w.loop(axes[0], first, end) as own:
                    element(own)

            along_inner(inner, across)
        else:
            with w.loop(None, first, end) as own:
                self._spread(axes, own)
                along_inner(inner, lambda: element(own))
        zero = ex.constant(0, self._dtype)
        with w.when(end < first + width), w.loop(None, ZERO, depth) as at:
            row = at if runs else w.let(base + at * width)
            with w.loop(None, w.let(end - first), number(width)) as own:
                place = row + own * tile.depth if runs else row + own
                w.emit(Store(array, w.let(place), zero))
