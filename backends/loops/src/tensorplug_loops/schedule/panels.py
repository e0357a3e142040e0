"""Panels of a product's factors: copies in the order in which tiles read them.

A panel is as high as a tile has rows, or as wide as its columns. Elements are computed while they
are copied, so windows, gathered elements and conversions cost nothing later. What lies behind the
end is the last row or column once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.recording import plain
from tensorplug_loops.schedule.lanes import lies_near
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.schedule.products import accumulated, plain_operand
from tensorplug_loops.schedule.structures import parameters_in
from tensorplug_loops.schedule.writer import ZERO, Writer
from tensorplug_loops.statements import Array, Kernel, Shared, Store, item, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops
    from tensorplug_loops.schedule.products import Roles, Tile


_BLOCK: Final = 8  # elements along either side that are read before they are used


def number(value: int) -> Expression:
    """Return a constant index."""
    return ex.constant(value, dt.int64)


class Panels:
    """Writes kernels of a product: what all of them need."""

    def __init__(self, loops: Loops, machine: Machine, roles: Roles) -> None:
        self._loops, self._machine, self._roles = loops, machine, roles
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

    def _write_element(self, total: Expression) -> None:
        """Write the outputs' elements of a sum: the axes that remain have values."""
        w = self.w
        cast = self._lowering.converter.cast(total, self._dtype, self._given)
        w.bind(("result", w.inputs), w.here(cast))
        w.store(list(enumerate(self._outputs, w.inputs)))

    def _write_part(self, array: str, which: Expression, total: Expression) -> None:
        """Write the sum of a slice: slices follow one another, each as dense as the result."""
        w, at = self.w, which
        for axis in self._loops.kept():
            at = w.let(at * w.number(f"n{axis}") + w.value(ex.axis(axis)))
        w.emit(Store(array, at, total))

    def _inner_step(self, k: int) -> Expression:
        """Return the distance of an operand's inner elements."""
        axis = self._roles.inner[-1]
        step = self._loops.operands[k].offset.steps[axis]
        return number(plain(step)) if 0 <= step <= 1 else self.w.number(f"s{k}_0_{axis}")

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

    def _number_of(self, inner: Sequence[int], origin: Expression) -> Expression:
        """Return the number of an inner element, whose axes have values, from an origin on."""
        w = self.w
        at = w.value(ex.axis(inner[0])) - origin
        for axis in inner[1:]:
            at = at * w.number(f"n{axis}") + w.value(ex.axis(axis))
        return at

    def _element(self, root: Expression) -> Expression:
        convert = self._lowering.converter.cast
        return self.w.here(convert(self.w.value(root), self._given, self._dtype))

    def _along(
        self,
        rest: Sequence[int],
        bounds: tuple[Expression, Expression] | None,
        body: Callable[[], None],
        runs: int = 0,
    ) -> None:
        """Write loops along inner axes; ``bounds``: of the first one; ``runs``: of the last."""
        w = self.w
        if not rest:
            body()
            return
        if runs < 0 and len(rest) == 1 and bounds is None:
            for at in range(-runs):
                with w.place((rest[0], number(at))):
                    body()
            return
        low, high = bounds or (ZERO, w.number(f"n{rest[0]}"))
        if runs > 1 and len(rest) == 1:
            middle = w.let(low + ((high - low) & -runs))
            with w.loop(rest[0], low, middle, step=runs, lanes=runs, whole=True):
                body()
            low = middle
        with w.loop(rest[0], low, high):
            self._along(rest[1:], None, body, runs)


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
        """Return the kernel that copies the columns' factor: an item takes a part of a panel."""
        w, tile, root = self._begin(), self._tile, self._factors[1]
        axis, first = tile.roles.inner[-1], tile.roles.inner[0]
        lies_across = (
            min(self._machine.lanes, tile.columns) >= _BLOCK
            and self._machine.vector_bytes > 0
            and self._are_neighbours(root, axis)
            and not self._are_neighbours(root, tile.roles.columns[-1])
        )
        if lies_across:
            w.emit(Shared("s", self._dtype, _BLOCK * _BLOCK))
        own, chunk = w.divided(w.let(item()), w.number("copies"))
        batch, panel = w.divided(own, w.number("panels_n"))
        w.bind_all(tile.roles.batch, batch)
        base = w.let(own * (w.number("inner") * tile.columns))
        low = w.let(chunk * w.number("copied"))
        bounds = low, w.least(low + w.number("copied"), w.number(f"n{first}"))
        if lies_across:
            self._copy_across(panel, base, bounds)
        else:
            self._copy(1, panel, "b", base, 0, bounds, ZERO)
        return self._finish(
            f"{self._loops.group.name}: columns",
            self._operands([root]),
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
        origin: Expression,
    ) -> None:
        """Copy a panel of a factor, 0 or 1: for each inner element, a tile's own.

        If the tile has ``runs``, copy one row after the other, each as long as the tile is deep.
        ``bounds``: along the inner axis ``split``; those before it have values. ``origin``: the
        place along it where the panel begins.
        """
        w, tile, roles = self.w, self._tile, self._tile.roles
        axes, width = (roles.columns, tile.columns) if which else (roles.rows, tile.rows)
        root, inner = self._factors[which], roles.inner[split:]
        first = w.let(panel * width)
        last = w.let(w.number("columns" if which else "rows") - 1)

        runs = 0 if which else tile.runs

        def element(own: Expression) -> None:
            """Store one of the panel's elements: the axes have values."""
            at, value = self._number_of(inner, origin), self._element(root)
            if runs:
                place = (own - first) * tile.depth + at
                w.emit(Store(array, place if w.lanes > 1 else w.let(place), value))
            else:
                w.emit(Store(array, own + w.let(base + at * width - first), value))

        def one_by_one(own: Expression, body: Callable[[], None]) -> None:
            w.bind_all(axes, w.least(own, last))
            body()

        if runs or len(axes) > 1 or not self._are_neighbours(root, axes[0]):
            with w.loop(None, first, w.let(first + width)) as own:
                one_by_one(own, lambda: self._along(inner, bounds, lambda: element(own), runs))
            return
        lanes = tile.lanes if which and self._has_lanes(root, axes[0]) else 1
        end, middle = w.let(first + width), first
        if lanes > 1:
            whole = w.least(end, last + 1)
            middle = w.let(first + ((whole - first) & -lanes))

        def across() -> None:
            if lanes > 1:
                with w.loop(axes[0], first, middle, step=lanes, lanes=lanes, whole=True) as own:
                    element(own)
            with w.loop(None, middle, end) as own:
                one_by_one(own, lambda: element(own))

        self._along(inner, bounds, across)

    def _has_lanes(self, root: Expression, axis: int) -> bool:
        """Return whether vectors along an axis are copied."""
        machine = self._machine
        read = self._operands([root])
        checks = [check for k in read for check in self._loops.operands[k].checks]
        checked = any(check.at.steps[axis] and not check.holds for check in checks)
        plain = root.op == "parameter" and root.dtype is self._dtype and not checked
        near = lies_near(self._loops, axis, read)
        return near and (machine.vector_bytes > 0 or (plain and machine.tile_bytes > 0))

    def _copy_across(
        self, panel: Expression, base: Expression, bounds: tuple[Expression, Expression]
    ) -> None:
        """Copy a panel of columns whose inner elements are neighbours: in blocks, as they lie."""
        w, tile, inner = self.w, self._tile, self._tile.roles.inner
        root, width, axes = self._factors[1], tile.columns, tile.roles.columns
        first, last = w.let(panel * width), w.let(w.number("columns") - 1)
        block, *before = number(_BLOCK), *inner[:-1]

        def columns() -> None:
            low, high = (ZERO, w.number(f"n{inner[-1]}")) if before else bounds
            middle = w.let(low + ((high - low) & -_BLOCK))
            with (
                w.loop(None, low, middle, step=_BLOCK) as at,
                w.loop(None, ZERO, number(width), step=_BLOCK) as shift,
            ):
                for i in range(_BLOCK):
                    places = w.places(axes, w.least(first + (shift + i), last))
                    with (
                        w.place(*places),
                        w.loop(None, ZERO, block, step=_BLOCK, lanes=_BLOCK, whole=True) as j,
                        w.place((inner[-1], at + j)),
                    ):
                        w.emit(Store("s", j + i * _BLOCK, self._element(root)))
                with w.place((inner[-1], at)):
                    start = w.let(base + self._number_of(inner, ZERO) * width + shift)
                for i in range(_BLOCK):
                    with w.loop(None, ZERO, block, step=_BLOCK, lanes=_BLOCK, whole=True) as j:
                        value = w.copy(load("s", self._dtype, j * _BLOCK + i))
                        w.emit(Store("b", j + (start + i * width), value))
            with w.loop(inner[-1], middle, high), w.loop(None, ZERO, number(width)) as shift:
                w.bind_all(axes, w.least(first + shift, last))
                start = w.let(base + self._number_of(inner, ZERO) * width)
                w.emit(Store("b", start + shift, self._element(root)))

        self._along(before, bounds, columns)
