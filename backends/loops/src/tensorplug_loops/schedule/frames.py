"""The frame of a kernel: which elements an item takes, and the loops around what it does.

A work-item is an element along the axes that no reduction reduces; where items run one after the
other, the last of these axes is a loop of its own, of which an item takes a segment. Where memory
is read in strips, an item takes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule import strips
from tensorplug_loops.schedule.lanes import cost
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.schedule.writer import ZERO, Writer
from tensorplug_loops.statements import item

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tensorplug.plugin import Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.forms import Form
    from tensorplug_loops.schedule.keeping import Kept
    from tensorplug_loops.schedule.loops import Loops
    from tensorplug_loops.statements import Array, Kernel


class Frame:
    """Writes what is around the body of a kernel."""

    def __init__(self, loops: Loops, machine: Machine, form: Form) -> None:
        self._loops, self._machine, self._form = loops, machine, form
        self._group = loops.group
        lowering = Lowering(machine, loops.signs)
        loops.lowered(lowering.lower(loops.everything()))
        self.w = Writer(loops, lowering)
        reductions, outputs = len(self._group.reductions), len(self._group.outputs)
        self._outputs = loops.roots[reductions : reductions + outputs]
        rest = iter(loops.roots[reductions + outputs :])
        self._results = [
            *([root] for root in loops.roots[:reductions]),
            *([next(rest) for _ in fold.elements] for fold in self._group.folds),
        ]
        self._axes = [axis for axis, reduced in enumerate(loops.reduced) if reduced]
        self._lanes = form.lanes
        # Kernels of one axis take lengths of less than a vector.
        self._again = not machine.masked and (len(loops.lengths) > 1 or bool(self._axes))
        self._kept_axes = loops.kept()
        self.cost = cost(loops.roots) + 2 * len(loops.operands)
        self._extra: dict[str, Array] = {}
        self._kept: list[Kept] = []
        self._part: Expression | None = None
        self._from: tuple[Expression, Expression] | None = None  # of the split axis

    def kernel(self) -> Kernel:
        """Return the kernel."""
        w, form = self.w, self._form
        kept = self._kept_axes[: -1 if form.tail else None]
        outer = kept[: -1 - form.rows] if form.segmented else kept
        cut = form.segmented and not form.whole
        number = w.let(item()) if outer or cut or form.split else ZERO
        more = bool(outer) or form.split
        low, high = ZERO, ZERO
        if self._in_strips:
            number, low, high = self._strip(number, more=more)
        elif form.segmented:
            high = w.number(f"n{kept[-1]}")
            if cut:
                length = f"n{kept[-1]}"
                number, low, high = self._segment(number, length, "size", "segments", more=more)
        if form.split:
            across = w.number(f"n{kept[-1]}") if form.segmented else None
            self._part = number if across is None else w.let(number * across)
            if form.across:
                outer = kept[:-1]
                number, side = w.divided(number, w.number(f"n{kept[-1]}"))
                w.bind(kept[-1], side)
            length = f"n{self._axes[0]}"
            rest, start, stop = self._segment(number, length, "part", "parts", more=bool(outer))
            self._from, number = (start, stop), rest
        w.bind_all(outer, number)
        if form.rows:
            with w.loop(kept[-2], ZERO, w.number(f"n{kept[-2]}")):
                self._segmented(kept[-1], low, high)
        elif form.segmented:
            self._segmented(kept[-1], low, high)
        else:
            self._body()
        extra = tuple(self._extra.values())
        kernel = w.kernel(self._group.name, extra, group_size=form.members)
        return kernel if form.strip is None else strips.marked(kernel, self._loops, form.strip)

    def _body(self) -> None:
        """Write what is done for one element of the axes that are kept."""
        raise NotImplementedError

    def _segment(
        self, number: Expression, length: str, size: str, count: str, *, more: bool
    ) -> tuple[Expression, Expression, Expression]:
        """Return which item of the others a number is, and the bounds of its segment."""
        w = self.w
        own, rest = number, number
        if more:
            rest, own = w.divided(number, w.number(count))
        low = w.let(own * w.number(size))
        end = w.let(low + w.number(size))
        stop = w.number(length)
        return rest, low, w.least(end, stop)

    def _strip(
        self, number: Expression, *, more: bool
    ) -> tuple[Expression, Expression, Expression]:
        """Return which item of the others a number is, and the bounds of its strip."""
        w, lanes = self.w, self._lanes
        own, rest = number, number
        if more:
            rest, own = w.divided(number, w.number("segments"))
        low = w.let(own * lanes)
        return rest, low, low + lanes

    def _segmented(self, axis: int, low: Expression, high: Expression) -> None:
        """Write what an item does with its segment of the last axis."""
        self._across(axis, low, high, self._body)

    def _across(
        self, axis: int, low: Expression, high: Expression, body: Callable[[], None]
    ) -> None:
        """Write a loop whose iterations are lanes, and one for the rest."""
        w, lanes = self.w, self._lanes
        if lanes == 1:
            with w.loop(axis, low, high):
                body()
            return
        if self._form.strip is not None:
            step = lanes * self._form.members
            with w.loop(axis, self._begin(low), high, step=step, lanes=lanes, whole=True):
                body()
            return
        wide = lanes * self._form.vectors
        middle = w.let(low + ((high - low) & -wide))
        with w.loop(axis, low, middle, step=wide, lanes=wide, whole=True):
            body()
        with w.loop(axis, middle, high, step=lanes, lanes=lanes, again=self._again):
            body()

    def _begin(self, low: Expression) -> Expression:
        """Return where a work-item begins with strips."""
        return low

    def _bounds(self, axis: int) -> tuple[Expression, Expression]:
        if self._from is not None and axis == self._axes[0]:
            return self._from
        if self._form.taps and axis in self._axes:
            length = self._form.taps[self._axes.index(axis)]
            return ZERO, ex.constant(length, dt.int64)
        return ZERO, self.w.number(f"n{axis}")

    def _along(self, axis: int) -> AbstractContextManager[Expression]:
        """Write a loop along a reduced axis."""
        return self.w.loop(axis, *self._bounds(axis))

    @property
    def _in_strips(self) -> bool:
        """Whether an item has several parts, of neighbours along the last axis."""
        return self._form.segmented and self._form.strip is not None

    def _part_offset(self) -> Expression:
        """Return where an item's parts lie: along the items, and along the last axis."""
        assert self._part is not None
        if not self._form.segmented:
            return self._part  # an item's own number
        return self.w.value(ex.axis(self._kept_axes[-1])) + self._part
