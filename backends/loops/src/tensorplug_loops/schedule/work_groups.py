"""Rows that a work-group reduces together.

In each pass, a work-item takes every so many elements along one axis of a row, next to its
neighbour's: or, where the order counts, a run of them. The results of all are combined in shared
memory, in order, as a tree. Then each has them, and the next pass begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.nests import Nest
from tensorplug_loops.schedule.writer import ZERO
from tensorplug_loops.statements import (
    Assign,
    Barrier,
    Shared,
    Store,
    broadcast,
    load,
    member,
    variable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tensorplug.plugin import DType, Expression
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.accumulators import Accumulator, State
    from tensorplug_loops.schedule.forms import Form
    from tensorplug_loops.schedule.loops import Loops
    from tensorplug_loops.statements import Kernel


class WorkGroups(Nest):
    """Writes a kernel whose items are work-groups."""

    def __init__(self, loops: Loops, machine: Machine, form: Form) -> None:
        super().__init__(loops, machine, form)
        self._rooms: dict[tuple[int, DType], str] = {}

    def kernel(self) -> Kernel:
        """Return the kernel."""
        w = self.w
        self._member = w.let(member())
        self._is_first = w.let(ex.apply("equal", self._member, 0))
        return super().kernel()

    def _along(self, axis: int) -> AbstractContextManager[Expression]:
        w, size = self.w, self._form.members
        low, high = self._bounds(axis)
        if axis != self._axes[self._form.shared]:
            return w.loop(axis, low, high)
        if not self._group.folds:
            return w.loop(axis, w.let(low + self._member), high, step=size)
        count = w.let(high - low + (size - 1))
        run, _ = w.divided(count, ex.constant(size, dt.int64))
        self._taken, _ = w.divided(w.let(count + (run - size)), run)  # by the first so many
        start = w.let(low + self._member * run)
        end = w.let(start + run)
        return w.loop(axis, start, w.least(end, high))

    def _begin(self, low: Expression) -> Expression:
        return self.w.let(low + self._member * self._lanes)

    def _once(self) -> AbstractContextManager[None]:
        return self.w.when(self._is_first)

    def _gather(self, variables: Sequence[Accumulator | State]) -> None:
        for each in variables:
            each.gather_lanes()
        if self._machine.exchange == self._form.members:
            self._exchange(variables)
        else:
            self._share(variables)

    def _share(self, variables: Sequence[Accumulator | State]) -> None:
        """Combine what work-items have, in shared memory, as a tree."""
        w, own = self.w, self._member
        named = [pair for each in variables for pair in each.variables()]
        rooms = [self._room(at, dtype) for at, (_, dtype) in enumerate(named)]

        def write() -> None:
            for room, (name, dtype) in zip(rooms, named, strict=True):
                w.emit(Store(room, own, variable(name, dtype)))

        def read(at: Expression) -> list[Expression]:
            pairs = zip(rooms, named, strict=True)
            return [w.copy(load(room, dtype, at)) for room, (_, dtype) in pairs]

        write()
        w.emit(Barrier())
        apart = 1
        while apart < self._form.members:
            other = w.let(own + apart)
            joins = ex.apply("equal", own & (2 * apart - 1), 0)
            if self._group.folds:  # the state of none may only come first
                joins = ex.apply("logical_and", joins, ex.apply("less", other, self._taken))
            with w.when(w.here(joins)):
                others = iter(read(other))
                for each in variables:
                    each.join([next(others) for _ in each.variables()])
                write()
            w.emit(Barrier())
            apart *= 2
        for (name, _), value in zip(named, read(ZERO), strict=True):
            w.emit(Assign(name, value))
        w.emit(Barrier())  # before the next pass writes there

    def _exchange(self, variables: Sequence[Accumulator | State]) -> None:
        """Combine what neighbours have, who read one another's variables."""
        w = self.w
        for each in variables:
            named = each.variables()
            own = [w.copy(variable(*pair)) for pair in named]
            everything = [
                [w.let(broadcast(value, number)) for value in own]
                for number in range(self._form.members)
            ]
            for (name, _), value in zip(named, everything[0], strict=True):
                w.emit(Assign(name, value))
            for number, values in enumerate(everything[1:], 1):
                if not self._group.folds:
                    each.join(values)
                    continue
                with w.when(w.let(ex.apply("less", number, self._taken))):
                    each.join(values)

    def _room(self, number: int, dtype: DType) -> str:
        """Return an array of one number for each work-item."""
        key = number, dtype
        if key not in self._rooms:
            self._rooms[key] = self.w.fresh("h")
            self.w.emit(Shared(self._rooms[key], dtype, self._form.members))
        return self._rooms[key]
