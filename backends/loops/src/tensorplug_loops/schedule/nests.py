"""Kernels for groups whose outputs are dense: loops along the axes that are not items.

In an item (``frames``), the reduced axes are passed over once for each level of reductions, a
level being those that need the results of the level before, and once for the outputs.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.accumulators import DEPTH, Accumulator, State
from tensorplug_loops.schedule.frames import Frame
from tensorplug_loops.schedule.keeping import choose_kept, fetch, keep
from tensorplug_loops.schedule.lanes import count_copies
from tensorplug_loops.schedule.loops import reduced_axes
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.schedule.references import levels_of, result_owners
from tensorplug_loops.statements import Array, Assign, Store, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tensorplug.plugin import DType

_DEPTH_NARROW: Final = 8  # likewise, of float32, whose errors are larger
_BESIDE: Final = 4  # copies in a loop inside of lanes
_DEPTH_ALONE: Final = 4  # likewise, of what one accumulator takes


class Nest(Frame):
    """Writes one kernel."""

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
        array = Array(f"c{number}", dtype, strip=self._in_strips)
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
        together = self._form.members > 1 and self._form.strip is None
        flat = outside or bool(folds) or not self._axes or together
        alone = flat and (not self._axes or bool(folds) or together)
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
                name = f"p{parameter - w.inputs}"
                array = Array(name, value.dtype, written=True, strip=self._in_strips)
                self._extra[array.name] = array
                w.emit(Store(array.name, self._part_offset(), value))

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
        whole = self._form.strip == axis
        if whole:
            low = self._begin(low)
        apart = lanes * self._form.members
        stride = copies * apart
        is_block = self._form.block and stride == 1
        blocked = not is_block and any(accumulator.blocked for accumulator in accumulators)

        def several(start: Expression, stop: Expression) -> None:
            with w.loop(None, start, stop, step=stride, lanes=lanes, whole=True) as index:
                for copy in range(copies):
                    with w.place((axis, index + copy * apart if copy else index)):
                        add(copy)

        middle = low
        if stride > 1 or blocked:
            middle = w.let(low + ((high - low) & -stride)) if stride > 1 else high
            if whole and self._form.members > 1:  # one may begin behind the end
                middle = w.greatest(low, middle)
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
            again = self._again and not whole
            with w.loop(axis, middle, high, step=apart, lanes=lanes, whole=whole, again=again):
                add(0)
        for accumulator in accumulators:
            accumulator.close_block()
