"""What all kernels of groups have in common: their arguments, and how threads share the work.

A kernel runs over *items*: a row, or a segment of one. All threads call it with the same block
of arguments, and take the next few items from its counter until none is left. So a thread that
starts late, or not at all, costs nothing, and no item's result depends on the thread.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from tensorplug_cpu.jit.codegen.instructions import Code


class Item(NamedTuple):
    """What one item covers: elements ``low`` to ``high`` of a row; the start of each operand.

    ``indices``: along the outer axes. ``starts``: the addresses of the operands' rows.
    """

    indices: list[str]
    low: str
    high: str
    starts: list[str]


class Frame:
    """Writes the frame of a kernel.

    Args:
        code: where to write it.
        rank: the number of outer axes; an item is a position along them and a segment.
        operands: the number of buffers.

    Each argument is an integer of 64 bits; ``slots`` names them in order: ``"counter"``,
    ``"total"`` (of items), ``"grain"`` (items to take at once), ``"length"`` (of a row),
    ``"size"`` and ``"segments"`` (of segments of a row), ``("axis", a)``, the length of an outer
    axis, ``("pointer", k)`` of an operand, ``("stride", k, a)``, in bytes, and those asked for
    by ``argument``. Axis -1 of a stride is the segment.

    """

    def __init__(self, code: Code, rank: int, operands: int) -> None:
        self.code = code
        self.slots: list[Hashable] = ["counter"]
        self._rank = rank
        self._total = self.argument("total")
        self._grain = self.argument("grain")
        self.length = self.argument("length")
        self._size = self.argument("size")
        self._segments = self.argument("segments")
        self._axes = [self.argument(("axis", axis)) for axis in range(rank)]
        self._pointers = [self.argument(("pointer", k), "ptr") for k in range(operands)]
        self._strides = [
            [self.argument(("stride", k, axis)) for axis in (*range(rank), -1)]
            for k in range(operands)
        ]

    def argument(self, slot: Hashable, type_: str = "i64") -> str:
        """Add an argument; return its value."""
        pointer = self.code.emit(f"getelementptr i64, ptr %args, i64 {len(self.slots)}")
        self.slots.append(slot)
        return self.code.emit(f"load {type_}, ptr {pointer}")

    @contextmanager
    def items(self) -> Iterator[Item]:
        """Write the loops over the items, and the end of the function."""
        code = self.code
        index = code.allocate("i64")
        take, work, leave = (code.name() for _ in range(3))
        code.do(f"br label %{take}")
        code.label(take)
        first = code.emit(f"atomicrmw add ptr %args, i64 {self._grain} monotonic")
        more = code.emit(f"icmp slt i64 {first}, {self._total}")
        code.do(f"br i1 {more}, label %{work}, label %{leave}")
        code.label(work)
        code.do(f"store i64 {first}, ptr {index}")
        end = code.emit(f"add nsw i64 {first}, {self._grain}")
        last = code.call("llvm.smin", "i64", [end, self._total])
        with code.loop(index, 1, last) as number:
            yield self._split(number)
        code.do(f"br label %{take}")
        code.label(leave)
        code.do("ret void")

    def _split(self, number: str) -> Item:
        code = self.code
        row = code.emit(f"udiv i64 {number}, {self._segments}")
        segment = code.emit(f"urem i64 {number}, {self._segments}")
        indices: list[str] = []
        for axis in reversed(range(1, self._rank)):
            indices.insert(0, code.emit(f"urem i64 {row}, {self._axes[axis]}"))
            row = code.emit(f"udiv i64 {row}, {self._axes[axis]}")
        if self._rank:
            indices.insert(0, row)
        low = code.emit(f"mul nsw i64 {segment}, {self._size}")
        end = code.emit(f"add nsw i64 {low}, {self._size}")
        high = code.call("llvm.smin", "i64", [end, self.length])
        starts = []
        for pointer, strides in zip(self._pointers, self._strides, strict=True):
            start = pointer
            for position, stride in zip([*indices, segment], strides, strict=True):
                offset = code.emit(f"mul nsw i64 {position}, {stride}")
                start = code.emit(f"getelementptr i8, ptr {start}, i64 {offset}")
            starts.append(start)
        return Item(indices, low, high, starts)
