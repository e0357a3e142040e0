"""Blocks of LLVM's instructions, as text: names, variables, calls, loops."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Blocks:
    """A function that is being written: ``allocations`` in its entry, ``lines`` behind it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.allocations: list[str] = []
        self.declarations: dict[str, None] = {}
        self._count = 0

    def emit(self, instruction: str) -> str:
        """Write an instruction; return the name of its result."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {instruction}")
        return f"%v{self._count}"

    def do(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def label(self) -> str:
        """Return a name for a block."""
        self._count += 1
        return f"b{self._count}"

    def start(self, label: str) -> None:
        """Start a block that the one before leads to."""
        self.do(f"br label %{label}")
        self.lines.append(f"{label}:")

    def allocate(self, type_: str) -> str:
        """Return the address of a variable, which lives in a register where possible."""
        self._count += 1
        self.allocations.append(f"  %v{self._count} = alloca {type_}")
        return f"%v{self._count}"

    def call(self, name: str, result: str, *arguments: str) -> str:
        """Call a function of arguments with their types."""
        types = [each[: each.find(">") + 1] or each.split()[0] for each in arguments]
        self.declarations[f"declare {result} @{name}({', '.join(types)})"] = None
        call = f"call {result} @{name}({', '.join(arguments)})"
        if result != "void":
            return self.emit(call)
        self.do(call)
        return ""

    def smaller(self, a: str, b: str) -> str:
        """Return the smaller of two whole numbers."""
        return self.call("llvm.smin.i64", "i64", f"i64 {a}", f"i64 {b}")

    @contextmanager
    def counting(self, start: str, stop: str, step: int) -> Iterator[str]:
        """Write a loop; give its index."""
        counter = self.allocate("i64")
        self.do(f"store i64 {start}, ptr {counter}")
        head, body, after = self.label(), self.label(), self.label()
        self.start(head)
        at = self.emit(f"load i64, ptr {counter}")
        more = self.emit(f"icmp slt i64 {at}, {stop}")
        self.do(f"br i1 {more}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        yield at
        following = self.emit(f"add nsw i64 {at}, {step}")
        self.do(f"store i64 {following}, ptr {counter}")
        self.do(f"br label %{head}")
        self.lines.append(f"{after}:")
