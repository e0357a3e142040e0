"""The native function that makes all calls of all steps of a loop, and the tables it reads.

It knows nothing of what is called: a call is the address of a function and that of a block of
arguments. Before a call, the addresses in its block that differ from step to step are *moved*: one
is ``base + step * stride + step % 2 * toggle``. So one compiled function serves all loops.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorplug_cpu.jit.codegen.compiler import compile_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_cpu.arrays import Array


TABLE: Final = 0
"""The region of the tables themselves; a loop numbers its others from 1 on."""

_ROW: Final = 4  # words of a row of either table

# Rows of calls: function, block, first move, the one after the last. Without a function, the block
# is the address of a bool that ends the loop. Rows of moves: target, base, stride, toggle.
_TEXT: Final = """
define void @steps(ptr %calls, ptr %moves, i64 %count, i64 %first, i64 %last, ptr %done) {
entry:
  br label %step
step:
  %t = phi i64 [ %first, %entry ], [ %t.next, %end ]
  store i64 %t, ptr %done
  %more = icmp slt i64 %t, %last
  br i1 %more, label %begin, label %leave
begin:
  %odd = and i64 %t, 1
  br label %each
each:
  %c = phi i64 [ 0, %begin ], [ %c.next, %next ]
  %some = icmp slt i64 %c, %count
  br i1 %some, label %call, label %end
call:
  %at = shl i64 %c, 5
  %row = getelementptr i8, ptr %calls, i64 %at
  %m.first.at = getelementptr i8, ptr %row, i64 16
  %m.last.at = getelementptr i8, ptr %row, i64 24
  %m.first = load i64, ptr %m.first.at
  %m.last = load i64, ptr %m.last.at
  br label %moving
moving:
  %m = phi i64 [ %m.first, %call ], [ %m.next, %move ]
  %any = icmp slt i64 %m, %m.last
  br i1 %any, label %move, label %ready
move:
  %m.at = shl i64 %m, 5
  %m.row = getelementptr i8, ptr %moves, i64 %m.at
  %base.at = getelementptr i8, ptr %m.row, i64 8
  %stride.at = getelementptr i8, ptr %m.row, i64 16
  %toggle.at = getelementptr i8, ptr %m.row, i64 24
  %target = load ptr, ptr %m.row
  %base = load i64, ptr %base.at
  %stride = load i64, ptr %stride.at
  %toggle = load i64, ptr %toggle.at
  %far = mul i64 %t, %stride
  %over = mul i64 %odd, %toggle
  %there = add i64 %base, %far
  %value = add i64 %there, %over
  store i64 %value, ptr %target
  %m.next = add i64 %m, 1
  br label %moving
ready:
  %function = load ptr, ptr %row
  %block.at = getelementptr i8, ptr %row, i64 8
  %block = load ptr, ptr %block.at
  %asks = icmp eq ptr %function, null
  br i1 %asks, label %ask, label %make
ask:
  %bool = load i8, ptr %block
  %holds = icmp ne i8 %bool, 0
  br i1 %holds, label %next, label %leave
make:
  call void %function(ptr %block)
  br label %next
next:
  %c.next = add i64 %c, 1
  br label %each
end:
  %t.next = add i64 %t, 1
  br label %step
leave:
  ret void
}
"""


@cache
def steps_function() -> Callable[..., None]:
    """Return the function: addresses of both tables, number of calls, first step, end, result.

    It writes the number of the step at which it stopped.
    """
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return compile_function(_TEXT, "steps", [pointer, pointer, number, number, number, pointer])


def address_of(function: Callable[..., None]) -> int:
    """Return the address of the code of a function that ``compile_function`` returned."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # of ctypes


class Place(NamedTuple):
    """Where a value lies: ``offset`` bytes into a region, and how that changes with the steps.

    ``stride``: the bytes from one step to the next; ``toggle``: added in odd steps.
    """

    region: int
    offset: int = 0
    stride: int = 0
    toggle: int = 0

    def after(self, distance: int) -> Place:
        """Return the place so many bytes behind."""
        return self._replace(offset=self.offset + distance)

    @property
    def moves(self) -> bool:
        """Whether it differs from step to step."""
        return bool(self.stride or self.toggle)


class Tables:
    """The tables of a loop while they are written, with offsets in the place of addresses."""

    def __init__(self) -> None:
        self._functions: list[Callable[..., None]] = []  # keeps their code alive
        self._blocks: list[int] = []
        self._relative: list[tuple[int, int]] = []  # words of blocks, and the regions they lie in
        self._calls: list[tuple[int, Place, int, int]] = []
        self._moves: list[tuple[int, Place]] = []

    def add(
        self,
        function: Callable[..., None],
        block: Sequence[int],
        places: Mapping[int, Place],
        counter: int | None = None,
    ) -> None:
        """Add a call; ``places``: the arguments that are addresses, by their positions in a block.

        ``counter``: the position of a number that is 0 before each call.
        """
        first, moved = len(self._blocks), len(self._moves)
        self._blocks += block
        if counter is not None:  # as if it were an address that is always 0
            self._moves.append((first + counter, Place(-1)))
        for at, place in places.items():
            if place.moves:
                self._moves.append((first + at, place))
            else:
                self._blocks[first + at] = place.offset
                self._relative.append((first + at, place.region))
        self._functions.append(function)
        block_of = Place(TABLE, 8 * first)
        self._calls.append((address_of(function), block_of, moved, len(self._moves)))

    def ask(self, place: Place) -> None:
        """Add the end of the loop, if the bool at a place that does not move is False."""
        self._calls.append((0, place, 0, 0))

    def finished(self) -> Program:
        """Return what runs the calls."""
        words = list(self._blocks)
        relative = list(self._relative)
        calls = len(words)
        for function, place, first, last in self._calls:
            relative.append((len(words) + 1, place.region))
            words += [function, place.offset, first, last]
        moves = len(words)
        for target, place in self._moves:
            relative.append((len(words), TABLE))
            if place.region >= 0:
                relative.append((len(words) + 1, place.region))
            words += [8 * target, place.offset, place.stride, place.toggle]
        where, regions = np.array(relative, np.int64).reshape(-1, 2).T
        return Program(
            np.array(words, np.int64),
            np.ascontiguousarray(where),
            np.ascontiguousarray(regions),
            (8 * calls, 8 * moves, len(self._calls)),
            tuple(self._functions),
        )


class Program(NamedTuple):
    """The tables of a loop, and what of them depends on the addresses of a run.

    ``where``, ``regions``: the words that are addresses, and the regions in which these lie.
    ``parts``: offsets of the calls and of the moves, and the number of calls.
    """

    words: Array
    where: Array
    regions: Array
    parts: tuple[int, int, int]
    functions: tuple[Callable[..., None], ...]

    def run(self, bases: Sequence[int], length: int | None, together: int) -> int:
        """Run the steps; return how many.

        ``bases``: the addresses of the regions from 1 on. ``length``: of the loop; None if a
        condition ends it. The interpreter sees signals after each ``together`` steps.
        """
        words = self.words.copy()
        table = words.ctypes.data
        words[self.where] += np.array([table, *bases], np.int64)[self.regions]
        calls, moves, count = self.parts
        done, run, at = ctypes.c_int64(), steps_function(), 0
        while length is None or at < length:
            end = at + together if length is None else min(at + together, length)
            run(table + calls, table + moves, count, at, end, ctypes.addressof(done))
            at = done.value
            if at < end:
                break
        return at
