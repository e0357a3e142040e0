"""Kernels for groups whose outputs are dense: loops along the axes that are not items.

A work-item is an element along the axes that no reduction reduces; where items run one after the
other, the last of these axes is a loop of its own, of which an item takes a segment. In an item,
the reduced axes are passed over once for each level of reductions, a level being those that need
the results of the level before, and once for the outputs.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.accumulators import DEPTH, Accumulator, State
from tensorplug_loops.schedule.keeping import Kept, choose_kept, fetch, keep
from tensorplug_loops.schedule.lanes import cost, count_copies
from tensorplug_loops.schedule.loops import reduced_axes
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.schedule.references import levels_of, result_owners
from tensorplug_loops.schedule.writer import ZERO, Writer
from tensorplug_loops.statements import Array, Assign, Kernel, Store, item, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tensorplug.plugin import DType
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.forms import Form
    from tensorplug_loops.schedule.loops import Loops

_DEPTH_NARROW: Final = 8  # likewise, of float32, whose errors are larger
_BESIDE: Final = 4  # copies in a loop inside of lanes
_DEPTH_ALONE: Final = 4  # likewise, of what one accumulator takes


class Nest:
    """Writes one kernel."""

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
        low, high = ZERO, w.number(f"n{kept[-1]}") if form.segmented else ZERO
        if cut:
            more = bool(outer) or form.split
            number, low, high = self._segment(
                number, f"n{kept[-1]}", "size", "segments", more=more
            )
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
        return w.kernel(self._group.name, tuple(self._extra.values()), group_size=form.members)

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
        wide = lanes * self._form.vectors
        middle = w.let(low + ((high - low) & -wide))
        with w.loop(axis, low, middle, step=wide, lanes=wide, whole=True):
            body()
        with w.loop(axis, middle, high, step=lanes, lanes=lanes, again=self._again):
            body()

    def _bounds(self, axis: int) -> tuple[Expression, Expression]:
        if self._from is not None and axis == self._axes[0]:
            return self._from
        if self._form.taps and axis in self._axes:
            length = self._form.taps[self._axes.index(axis)]
            return ZERO, ex.constant(length, dt.int64)
        return ZERO, self.w.number(f"n{axis}")

    def _body(self) -> None:
        """Write what is done for one element of the axes that are kept."""
        if self._loops.running:
            self._scan()
            return
        if self._form.tail:
            for at in range(self._form.tail):
                with self.w.place((self._kept_axes[-1], ex.constant(at, dt.int64))):
                    self._store(range(len(self._outputs)))
            return
        levels = levels_of(self._group)
        reduced = [bool(self._axes) and self._is_full(j) for j in range(len(self._outputs))]
        full = [j for j, is_full in enumerate(reduced) if is_full]
        passes = [[root for number in level for root in self._results[number]] for level in levels]
        rows = [(self.w.inputs + j, self._outputs[j].dtype) for j in full]
        self._kept = (
            choose_kept(self.w, [*passes, [self._outputs[j] for j in full]], rows, self._axes[-1])
            if full and not self._form.split
            else []
        )
        for at, level in enumerate(levels):
            self._reduce(level, at)
        if self._form.split:
            return
        if full:
            self._walk(self._axes, full)
        rest = [j for j, is_full in enumerate(reduced) if not is_full]
        if rest:
            with self._once():
                self._store(rest)

    def _is_full(self, j: int) -> bool:
        axes = reduced_axes(self._group)
        spans = self._group.outputs[j].spans
        return any(spanned and reduced for spanned, reduced in zip(spans, axes, strict=True))

    def _walk(self, axes: Sequence[int], outputs: Sequence[int]) -> None:
        """Write loops along the reduced axes, and the outputs in them."""
        if not axes:
            fetch(self.w, self._kept, len(levels_of(self._group)))
            self._store(outputs)
            return
        if len(axes) > 1 or self.w.lanes > 1 or self._lanes == 1:
            with self._along(axes[0]):
                self._walk(axes[1:], outputs)
        else:
            self._across(axes[0], *self._bounds(axes[0]), lambda: self._walk((), outputs))

    def _along(self, axis: int) -> AbstractContextManager[Expression]:
        """Write a loop along a reduced axis."""
        return self.w.loop(axis, *self._bounds(axis))

    def _once(self) -> AbstractContextManager[None]:
        """Write what is done once in a row."""
        return nullcontext()

    def _gather(self, variables: Sequence[Accumulator | State]) -> None:
        """Combine what the work-items of a row have accumulated."""

    def _store_free(self) -> None:
        """Write the outputs of a kernel for parts: they need no result."""
        if self._form.split:
            self._store(range(len(self._outputs)))

    def _store(self, outputs: Sequence[int]) -> None:
        self.w.store([(self.w.inputs + j, self._outputs[j]) for j in outputs])

    def _dtype(self, number: int) -> DType:
        """Return the dtype of a reduction, as the group has it."""
        return self._group.reductions[number].expression.dtype

    def _parameters(self, number: int) -> list[int]:
        owners = result_owners(self._group)
        return [self.w.inputs + at for at, owner in enumerate(owners) if owner == number]

    def _state(self, number: int) -> State:
        fold = self._group.folds[number - len(self._group.reductions)]
        lowering = Lowering(self._machine)
        roots = lowering.lower([*fold.initial, *fold.combine])
        size = len(fold.initial)
        return State(self.w, roots[:size], roots[size:])

    def _accumulator(self, number: int, copies: int, lanes: int, *, exact: bool) -> Accumulator:
        return Accumulator(
            self.w,
            self._group.reductions[number].op,
            self._dtype(number),
            wide=self._machine.wide,
            plain=self._form.few,
            copies=copies,
            lanes=lanes,
            exact=exact,
        )

    def _scan(self) -> None:
        """Write the loop of scans: each element follows those before."""
        w, count = self.w, len(self._group.reductions)
        accumulators = [
            self._accumulator(number, 1, w.lanes, exact=True) for number in range(count)
        ]
        states = [self._state(count + at) for at in range(len(self._group.folds))]
        if self._form.split:
            for number, accumulator in enumerate(accumulators):
                self._carry(number, accumulator)

        def step() -> None:
            for number, accumulator in enumerate(accumulators):
                accumulator.add(0, w.value(self._results[number][0]))
                (parameter,) = self._parameters(number)
                w.bind(("result", parameter), w.copy(accumulator.result(across=False)))
            for number, state in enumerate(states, count):
                state.join([w.value(root) for root in self._results[number]])
                values = map(w.copy, state.values())
                for parameter, value in zip(self._parameters(number), values, strict=True):
                    w.bind(("result", parameter), value)
            self._store(range(len(self._outputs)))

        if self._axes:
            (axis,) = self._axes
            with w.loop(axis, *self._bounds(axis)):
                step()
        else:
            step()

    def _carry(self, number: int, accumulator: Accumulator) -> None:
        """Begin with what lies before the part."""
        w, (name, dtype) = self.w, accumulator.variables()[0]
        array = Array(f"c{number}", dtype)
        self._extra[array.name] = array
        w.emit(Assign(name, w.copy(load(array.name, dtype, self._part_offset()))))

    def _reduce(self, level: Sequence[int], at: int) -> None:
        """Write the pass for one level, and define its results, or write the split's.

        ``at``: its number.
        """
        w, count = self.w, len(self._group.reductions)
        roots = [root for number in level for root in self._results[number]]
        outside = w.lanes > 1
        folds = [number for number in level if number >= count]
        flat = outside or bool(folds) or not self._axes or self._form.members > 1
        alone = flat and (not self._axes or bool(folds) or self._form.members > 1)
        one = alone or self._form.short or self._form.vectors > 1
        copies = 1 if one else count_copies(self._machine, roots)
        copies = min(copies, _BESIDE) if flat else copies
        lanes = w.lanes if flat else self._lanes
        accumulators = {
            number: self._accumulator(number, copies, lanes, exact=alone)
            for number in level
            if number < count
        }
        states = {number: self._state(number) for number in folds}

        def add(copy: int = 0) -> None:
            fetch(w, self._kept, at)
            values = {
                number: accumulators[number].terms(self._results[number][0])
                if number < count
                else [w.value(root) for root in self._results[number]]
                for number in level
            }
            keep(w, self._kept, at)
            self._store_free()
            for number, accumulator in accumulators.items():
                accumulator.add(copy, *values[number])
            for number, state in states.items():
                state.join(values[number])

        with ExitStack() as outer:
            for axis in self._axes if alone else self._axes[:-1]:
                outer.enter_context(self._along(axis))
            if alone or not self._axes:
                add()
            else:
                own = list(accumulators.values())
                self._inner(self._axes[-1], own, copies, add, 1 if flat else lanes)
        self._gather([*accumulators.values(), *states.values()])
        if self._form.split:
            with self._once():
                self._write_parts(accumulators, states, across=not flat)
            return
        for number in level:
            values = (
                [accumulators[number].result(across=not flat)]
                if number < count
                else states[number].values()
            )
            for parameter, value in zip(self._parameters(number), values, strict=True):
                w.bind(("result", parameter), value)

    def _write_parts(
        self, accumulators: dict[int, Accumulator], states: dict[int, State], *, across: bool
    ) -> None:
        """Write what has accumulated in this item: the arrays are of items."""
        w = self.w
        for number in (*accumulators, *states):
            values = (
                [accumulators[number].total(across=across)]
                if number in accumulators
                else states[number].values()
            )
            for parameter, value in zip(self._parameters(number), values, strict=True):
                array = Array(f"p{parameter - w.inputs}", value.dtype, written=True)
                self._extra[array.name] = array
                w.emit(Store(array.name, self._part_offset(), value))

    def _part_offset(self) -> Expression:
        """Return where an item's parts lie: along the items, and along the last axis."""
        assert self._part is not None
        if not self._form.segmented:
            return self._part  # an item's own number
        return self.w.value(ex.axis(self._kept_axes[-1])) + self._part

    def _inner(
        self,
        axis: int,
        accumulators: Sequence[Accumulator],
        copies: int,
        add: Callable[[int], None],
        lanes: int,
    ) -> None:
        """Write the loop along the last axis, several vectors at a time, and the rest."""
        w = self.w
        low, high = self._bounds(axis)
        stride = copies * lanes
        is_block = self._form.block and stride == 1
        blocked = not is_block and any(accumulator.blocked for accumulator in accumulators)

        def several(start: Expression, stop: Expression) -> None:
            with w.loop(None, start, stop, step=stride, lanes=lanes, whole=True) as index:
                for copy in range(copies):
                    with w.place((axis, index + copy * lanes if copy else index)):
                        add(copy)

        middle = low
        if stride > 1 or blocked:
            middle = w.let(low + ((high - low) & -stride)) if stride > 1 else high
            if blocked:
                depth = DEPTH if self._machine.wide else _DEPTH_NARROW
                size = (depth if max(lanes, w.lanes) > 1 else _DEPTH_ALONE) * stride
                with w.loop(None, low, middle, step=size) as block:
                    end = w.let(block + size)
                    several(block, w.least(end, middle))
                    for accumulator in accumulators:
                        accumulator.close_block()
            else:
                several(low, middle)
        if stride > 1 or not blocked:
            with w.loop(axis, middle, high, step=lanes, lanes=lanes, again=self._again):
                add(0)
        for accumulator in accumulators:
            accumulator.close_block()
