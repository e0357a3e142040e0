"""Instructions of LLVM's intermediate representation, as text.

A value is written as its name or as a constant; the type stands where it is used. All vectors
of a function have the same number of lanes, and with one lane the values are scalars.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import narrowing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.plugin import DType, Scalar


_FLOATS: Final = {dt.float16: "half", dt.float32: "float", dt.float64: "double"}
_SUFFIXES: Final = {"half": "f16", "float": "f32", "double": "f64"}


def element_type(dtype: DType) -> str:
    """Return LLVM's type of one number: ``float``, ``i64``; a bool is an ``i1``.

    bfloat16 is an ``i16`` with its bits: LLVM converts its own type by calls of functions.
    """
    return "i1" if dtype is dt.bool_ else _FLOATS.get(dtype) or f"i{8 * dtype.itemsize}"


def vector_type(element: str, lanes: int) -> str:
    """Return the type of ``lanes`` elements."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def suffix(type_: str) -> str:
    """Return how a type is written in the name of an intrinsic: ``v16f32``."""
    if not type_.startswith("<"):
        return _SUFFIXES.get(type_, type_)
    lanes, _, element = type_[1:-1].partition(" x ")
    return f"v{lanes}{_SUFFIXES.get(element, element)}"


def literal(value: Scalar, dtype: DType, lanes: int = 1) -> str:
    """Write a number, rounded to ``dtype`` or wrapped, as a constant."""
    if dtype is dt.bool_:
        text = "true" if value else "false"
    elif dtype in dt.WIDENED:
        text = str(int(narrowing.convert(np.array(value, np.float64), dtype).view(np.int16)))
    elif dtype in dt.FLOATING:
        with np.errstate(all="ignore"):  # too large a number is infinite
            number = float(dtype.numpy.type(value))
        if dtype is dt.float16:
            text = f"0xH{struct.pack('>e', number).hex().upper()}"
        else:  # a float, too, is written with the digits of a double
            text = f"0x{struct.pack('>d', number).hex().upper()}"
    else:
        bits = 8 * dtype.itemsize
        wrapped = int(value) % (1 << bits)  # type: ignore[arg-type]  # not complex
        signed = dtype in dt.SIGNED and wrapped >> (bits - 1)
        text = str(wrapped - (1 << bits) if signed else wrapped)
    return text if lanes == 1 else f"splat ({element_type(dtype)} {text})"


class Code:
    """The text of one module with one function, ``run``, as far as it is written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._allocations: list[str] = []
        self._declarations: dict[str, None] = {}
        self._count = 0

    def name(self) -> str:
        """Return a new name for a value or a block."""
        self._count += 1
        return f"v{self._count}"

    def emit(self, instruction: str) -> str:
        """Write an instruction; return the name of its result."""
        name = f"%{self.name()}"
        self._lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        """Start a block."""
        self._lines.append(f"{name}:")

    def allocate(self, type_: str) -> str:
        """Return the address of a variable, which lives in a register where possible."""
        name = f"%{self.name()}"
        self._allocations.append(f"  {name} = alloca {type_}")
        return name

    def call(self, intrinsic: str, type_: str, operands: Sequence[str], more: str = "") -> str:
        """Call an intrinsic of operands of one type; return its result, of the same type.

        ``more``: further arguments with their types, such as ``i1 false``.
        """
        name = f"@{intrinsic}.{suffix(type_)}"
        types = [type_] * len(operands) + ([more.split(maxsplit=1)[0]] if more else [])
        self.declare(f"declare {type_} {name}({', '.join(types)})")
        arguments = [f"{type_} {operand}" for operand in operands] + ([more] if more else [])
        return self.emit(f"call {type_} {name}({', '.join(arguments)})")

    def masked_load(self, type_: str, pointer: str, mask: str) -> str:
        """Return a vector from memory, 0 in the lanes that ``mask`` leaves out."""
        name = f"@llvm.masked.load.{suffix(type_)}.p0"
        lanes = f"<{type_[1:].split(maxsplit=1)[0]} x i1>"
        self.declare(f"declare {type_} {name}(ptr, i32, {lanes}, {type_})")
        arguments = f"ptr {pointer}, i32 1, {lanes} {mask}, {type_} zeroinitializer"
        return self.emit(f"call {type_} {name}({arguments})")

    def masked_store(self, type_: str, value: str, pointer: str, mask: str) -> None:
        """Write a vector, but for the lanes that ``mask`` leaves out."""
        name = f"@llvm.masked.store.{suffix(type_)}.p0"
        lanes = f"<{type_[1:].split(maxsplit=1)[0]} x i1>"
        self.declare(f"declare void {name}({type_}, ptr, i32, {lanes})")
        self.do(f"call void {name}({type_} {value}, ptr {pointer}, i32 1, {lanes} {mask})")

    def declare(self, declaration: str) -> None:
        """Declare a function, once."""
        self._declarations[declaration] = None

    def splat(self, value: str, element: str, lanes: int) -> str:
        """Return a vector of equal elements."""
        if lanes == 1:
            return value
        type_ = vector_type(element, lanes)
        one = self.emit(f"insertelement {type_} poison, {element} {value}, i64 0")
        return self.emit(
            f"shufflevector {type_} {one}, {type_} poison, <{lanes} x i32> zeroinitializer"
        )

    @contextmanager
    def loop(self, index: str, step: int, stop: str, *, least: int = 1) -> Iterator[str]:
        """Write a loop while ``least`` steps of 1 remain before ``stop``; give the index.

        ``index``: the address of the variable that counts, which this changes.
        """
        head, body, after = (self.name() for _ in range(3))
        self.do(f"br label %{head}")
        self.label(head)
        at = self.emit(f"load i64, ptr {index}")
        end = self.emit(f"add nsw i64 {at}, {least}")
        fits = self.emit(f"icmp sle i64 {end}, {stop}")
        self.do(f"br i1 {fits}, label %{body}, label %{after}")
        self.label(body)
        yield at
        following = self.emit(f"add nsw i64 {at}, {step}")
        self.do(f"store i64 {following}, ptr {index}")
        self.do(f"br label %{head}")
        self.label(after)

    def mask(self, at: str, stop: str, lanes: int) -> str:
        """Return which lanes of a vector that starts at index ``at`` lie before ``stop``."""
        left = self.emit(f"sub nsw i64 {stop}, {at}")
        few = self.call("llvm.smin", "i64", [left, str(lanes)])
        count = self.splat(self.emit(f"trunc i64 {few} to i32"), "i32", lanes)
        numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
        type_ = vector_type("i32", lanes)
        return self.emit(f"icmp ult {type_} <{numbers}>, {count}")

    def all_lanes(self, condition: str, lanes: int) -> str:
        """Return whether a condition holds in all lanes."""
        if lanes == 1:
            return condition
        type_ = vector_type("i1", lanes)
        name = f"@llvm.vector.reduce.and.{suffix(type_)}"
        self.declare(f"declare i1 {name}({type_})")
        return self.emit(f"call i1 {name}({type_} {condition})")

    def write(self, attributes: str = "") -> str:
        """Return the module; the function takes the address of its arguments."""
        return "\n".join(
            [
                "define void @run(ptr noalias %args) #0 {",
                "entry:",
                *self._allocations,
                *self._lines,
                "}",
                *self._declarations,
                f"attributes #0 = {{ nounwind {attributes} }}",
                "",
            ]
        )
