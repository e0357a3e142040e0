"""LLVM's intermediate representation, as text: lanes are vectors.

``run`` takes the address of a block of 64-bit numbers: a counter of items, their number, how many
a thread takes at once, the addresses of the arrays, the kernel's numbers. Threads call it with the
same block, and each takes the next items until none is left.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_loops.dialects.llvm_blocks import Blocks
from tensorplug_loops.statements import (
    Array,
    Assign,
    Declare,
    If,
    Let,
    Loop,
    Shared,
    Store,
    name_of,
    neighbouring,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType, Expression, Scalar
    from tensorplug_loops.statements import Kernel, Statement

_FLOATS: Final = {dt.float16: "half", dt.float32: "float", dt.float64: "double"}
_SUFFIXES: Final = {"half": "f16", "float": "f32", "double": "f64"}
_INSTRUCTIONS: Final[dict[str, tuple[str, ...]]] = {  # of floats, unsigned and signed integers
    "add": ("fadd", "add", "add"),
    "subtract": ("fsub", "sub", "sub"),
    "multiply": ("fmul", "mul", "mul"),
    "divide": ("fdiv", "", ""),
    "quotient": ("", "udiv", "sdiv"),
    "rest": ("frem", "urem", "srem"),
    "equal": ("fcmp oeq", "icmp eq", "icmp eq"),
    "less": ("fcmp olt", "icmp ult", "icmp slt"),
    "less_equal": ("fcmp ole", "icmp ule", "icmp sle"),
    **{f"bitwise_{name}": ("", name, name) for name in ("and", "or", "xor")},
    **{f"logical_{name}": ("", name, name) for name in ("and", "or")},
    "bitwise_left_shift": ("", "shl", "shl"),
    "bitwise_right_shift": ("", "lshr", "ashr"),
}
_INTRINSICS: Final = {
    **{name: f"llvm.{name}" for name in ("floor", "ceil", "trunc", "sqrt", "copysign")},
    "round": "llvm.roundeven",
    "abs": "llvm.fabs",
    "fma": "llvm.fmuladd",
}


def _memory(dtype: DType) -> str:
    return _FLOATS.get(dtype) or f"i{8 * dtype.itemsize}"


def _element(dtype: DType) -> str:
    return "i1" if dtype is dt.bool_ else _memory(dtype)


def _vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def _suffix(element: str, lanes: int) -> str:
    return f"{f'v{lanes}' if lanes > 1 else ''}{_SUFFIXES.get(element, element)}"


def literal(value: Scalar, dtype: DType) -> str:
    """Return a constant."""
    if dtype is dt.bool_:
        return "true" if value else "false"
    if dtype in dt.FLOATING:
        with np.errstate(all="ignore"):  # too large a number is infinite
            number = float(dtype.numpy.type(value))
        if dtype is dt.float16:
            return f"0xH{struct.pack('>e', number).hex().upper()}"
        return f"0x{struct.pack('>d', number).hex().upper()}"  # a float, too
    bits = 8 * dtype.itemsize
    wrapped = int(value) % (1 << bits)  # type: ignore[arg-type]  # not complex
    return str(wrapped - (1 << bits) if dtype in dt.SIGNED and wrapped >> (bits - 1) else wrapped)


class _Value(NamedTuple):
    """A name or constant; ``lanes``: 1 if it is uniform."""

    text: str
    dtype: DType
    lanes: int = 1

    @property
    def type(self) -> str:
        return _vector(_element(self.dtype), self.lanes)


class _Text(Blocks):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self._kernel = kernel
        self._arrays = {each.name: each for each in kernel.arrays}
        self._names: dict[str, _Value] = {}
        self._variables: dict[str, _Value] = {}  # their addresses
        self._index, self._lanes = "", 1  # of the loop with lanes
        self._mask: _Value | None = None  # which of its lanes run; None: all

    def write(self, attributes: str) -> str:
        arguments = ["total", "grain", *self._arrays, *(n.name for n in self._kernel.numbers)]
        for at, name in enumerate(arguments, 1):
            pointer = self.emit(f"getelementptr i64, ptr %args, i64 {at}")
            type_ = "ptr" if name in self._arrays else "i64"
            text = self.emit(f"load {type_}, ptr {pointer}")
            self._names[name] = _Value(text, dt.int64)
        total, grain = self._names["total"].text, self._names["grain"].text
        take, work, leave = self.label(), self.label(), self.label()
        self.start(take)
        first = self.emit(f"atomicrmw add ptr %args, i64 {grain} monotonic")
        more = self.emit(f"icmp slt i64 {first}, {total}")
        self.do(f"br i1 {more}, label %{work}, label %{leave}")
        self.lines.append(f"{work}:")
        end = self.emit(f"add nsw i64 {first}, {grain}")
        last = self.smaller(end, total)
        with self.counting(first, last, 1) as number:
            self._names["item"] = _Value(number, dt.int64)
            self._block(self._kernel.body)
        self.do(f"br label %{take}")
        self.lines.append(f"{leave}:")
        self.do("ret void")
        head = f"; {self._kernel.name}\ndefine void @run(ptr noalias %args) #0 {{\nentry:"
        foot = f"attributes #0 = {{ nounwind {attributes} }}\n"
        body = [*self.allocations, *self.lines, "}", *self.declarations]
        return "\n".join([head, *body, foot])

    def _block(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self._write(statement)

    def _write(self, statement: Statement) -> None:
        match statement:
            case Let(name, value):
                self._names[name] = self._value(value)
            case Declare(name, value, lanes):
                found = self._spread(self._value(value), lanes)
                to = self._variables[name] = found._replace(text=self.allocate(found.type))
                self.do(f"store {found.type} {found.text}, ptr {to.text}")
            case Assign(name, value):
                to = self._variables[name]
                found = self._spread(self._value(value), to.lanes)
                if self._mask and to.lanes > 1:
                    found = self._select(self._mask, found, self._named(name))
                self.do(f"store {found.type} {found.text}, ptr {to.text}")
            case Store(array, offset, value):
                self._store(array, offset, self._value(value))
            case Loop():
                self._loop(statement)
            case If(condition, then):
                self._branch(self._value(condition), then)
            case Shared(name, dtype, length):
                self._arrays[name] = Array(name, dtype, written=True)
                text = self.allocate(f"[{length} x {_memory(dtype)}], align 64")
                self._names[name] = _Value(text, dt.int64)
            case _:
                raise TypeError(f"LLVM: {type(statement).__name__} is for other machines")

    def _loop(self, loop: Loop) -> None:
        start, stop = self._value(loop.start).text, self._value(loop.stop).text
        before = self._index, self._lanes, self._mask
        with self.counting(start, stop, loop.step) as at:
            self._names[loop.index] = _Value(at, dt.int64)
            if loop.lanes > 1:
                self._index, self._lanes = loop.index, loop.lanes
                self._mask = None if loop.whole else self._front(at, stop)
            self._block(loop.body)
        self._index, self._lanes, self._mask = before

    def _front(self, at: str, stop: str) -> _Value:
        """Return which lanes lie before the end."""
        few = self.smaller(self.emit(f"sub nsw i64 {stop}, {at}"), str(self._lanes))
        count = _Value(self.emit(f"trunc i64 {few} to i32"), dt.int32)
        all_ = self._spread(count, self._lanes)
        numbers = ", ".join(f"i32 {lane}" for lane in range(self._lanes))
        text = self.emit(f"icmp ult {all_.type} <{numbers}>, {all_.text}")
        return _Value(text, dt.bool_, self._lanes)

    def _branch(self, condition: _Value, then: Sequence[Statement]) -> None:
        before, test = self._mask, condition.text
        if condition.lanes > 1:
            mask = self._mask = self._allowed(condition)
            assert mask is not None
            name = f"llvm.vector.reduce.or.v{mask.lanes}i1"
            test = self.call(name, "i1", f"{mask.type} {mask.text}")
        inside, after = self.label(), self.label()
        self.do(f"br i1 {test}, label %{inside}, label %{after}")
        self.lines.append(f"{inside}:")
        self._block(then)
        self.start(after)
        self._mask = before

    def _spread(self, value: _Value, lanes: int) -> _Value:
        if value.lanes == lanes:
            return value
        element = _element(value.dtype)
        type_ = _vector(element, lanes)
        if value.text[0] != "%":
            return _Value(f"splat ({element} {value.text})", value.dtype, lanes)
        one = self.emit(f"insertelement {type_} poison, {element} {value.text}, i64 0")
        blank = f"<{lanes} x i32> zeroinitializer"
        text = self.emit(f"shufflevector {type_} {one}, {type_} poison, {blank}")
        return _Value(text, value.dtype, lanes)

    def _select(self, condition: _Value, t: _Value, e: _Value) -> _Value:
        lanes = max(condition.lanes, t.lanes, e.lanes)
        t, e = self._spread(t, lanes), self._spread(e, lanes)
        test = f"select {condition.type} {condition.text}"
        return t._replace(text=self.emit(f"{test}, {t.type} {t.text}, {e.type} {e.text}"))

    def _named(self, name: str) -> _Value:
        if name in self._variables:
            at = self._variables[name]
            return at._replace(text=self.emit(f"load {at.type}, ptr {at.text}"))
        value = self._names[name]
        if name != self._index:
            return value
        numbers = ", ".join(f"i64 {lane}" for lane in range(self._lanes))
        first = self._spread(value, self._lanes)
        text = self.emit(f"add nsw {first.type} {first.text}, <{numbers}>")
        return first._replace(text=text)

    def _is_uniform(self, x: Expression) -> bool:
        if x.op in {"variable", "item"}:
            name = name_of(x)
            found = self._variables.get(name) or self._names[name]
            return name != self._index and found.lanes == 1
        return all(map(self._is_uniform, x.operands))

    def _value(self, x: Expression) -> _Value:
        if x.op == "constant":
            assert x.value is not None
            return _Value(literal(x.value, x.dtype), x.dtype)
        if x.op in {"variable", "item"}:
            return self._named(name_of(x))
        if x.op == "load":
            return self._load(x)
        operands = [self._value(operand) for operand in x.operands]
        if x.op == "half":
            return self._half(operands[0], int(x.value))  # type: ignore[arg-type]  # 0 or 1
        if x.op == "where":
            return self._select(*operands)
        lanes = max(operand.lanes for operand in operands)
        spread = [self._spread(operand, lanes) for operand in operands]
        return _Value(self._operation(x, spread), x.dtype, lanes)

    def _operation(self, x: Expression, operands: Sequence[_Value]) -> str:
        a, source = operands[0], x.operands[0].dtype
        texts = [operand.text for operand in operands]
        kind = 0 if source in dt.FLOATING else 1 + (source in dt.SIGNED)
        if x.op in _INSTRUCTIONS:
            return self.emit(f"{_INSTRUCTIONS[x.op][kind]} {a.type} {', '.join(texts)}")
        if x.op in _INTRINSICS:
            name = f"{_INTRINSICS[x.op]}.{_suffix(_element(source), a.lanes)}"
            return self.call(name, a.type, *(f"{a.type} {text}" for text in texts))
        if x.op == "negative":
            if not kind:
                return self.emit(f"fneg {a.type} {a.text}")
            return self.emit(f"sub {a.type} zeroinitializer, {a.text}")
        if x.op in {"logical_not", "bitwise_not"}:
            ones = self._spread(_Value("true" if source is dt.bool_ else "-1", source), a.lanes)
            return self.emit(f"xor {a.type} {a.text}, {ones.text}")
        target = _vector(_element(x.dtype), a.lanes)
        if target == a.type:
            return a.text
        instruction = "bitcast" if x.op == "bitcast" else _conversion(source, x.dtype)
        return self.emit(f"{instruction} {a.type} {a.text} to {target}")

    def _half(self, value: _Value, which: int) -> _Value:
        half = value.lanes // 2
        if half == 1:
            text = self.emit(f"extractelement {value.type} {value.text}, i64 {which}")
            return _Value(text, value.dtype)
        numbers = ", ".join(f"i32 {which * half + lane}" for lane in range(half))
        both = f"{value.type} {value.text}, {value.type} poison"
        text = self.emit(f"shufflevector {both}, <{half} x i32> <{numbers}>")
        return _Value(text, value.dtype, half)

    def _address(self, array: str, offset: _Value) -> str:
        element, base = _memory(self._arrays[array].dtype), self._names[array].text
        return self.emit(f"getelementptr {element}, ptr {base}, {offset.type} {offset.text}")

    def _place(self, offset: Expression) -> tuple[_Value, bool]:
        """Return an offset, and whether it is that of the first of neighbouring lanes."""
        if self._lanes > 1:
            rest = neighbouring(offset, self._index, self._is_uniform)
            if rest is not None:
                first, more = self._names[self._index], self._value(rest)
                text = self.emit(f"add nsw i64 {first.text}, {more.text}")
                return _Value(text, dt.int64), True
        return self._value(offset), False

    def _allowed(self, condition: _Value | None) -> _Value | None:
        """Return which lanes run: where a condition holds, if one is given."""
        if condition is None or self._mask is None:
            return condition or self._mask
        both = self._spread(condition, self._lanes)
        text = f"and {both.type} {both.text}, {self._mask.text}"
        return both._replace(text=self.emit(text))

    def _masked(
        self, kind: str, array: str, at: _Value, allowed: _Value | None, lanes: int
    ) -> tuple[str, str, str]:
        """Return an intrinsic's name, and addresses and lanes with their types."""
        near = at.lanes == 1 and kind in {"load", "store"}
        pointers, end = ("ptr", "p0") if near else (f"<{lanes} x ptr>", f"v{lanes}p0")
        address = self._address(array, at if near else self._spread(at, lanes))
        mask = self._spread(allowed or _Value("true", dt.bool_), lanes)
        element = _memory(self._arrays[array].dtype)
        name = f"llvm.masked.{kind}.{_suffix(element, lanes)}.{end}"
        return name, f"{pointers} {address}", f"{mask.type} {mask.text}"

    def _load(self, x: Expression) -> _Value:
        array, (offset, *where) = name_of(x), x.operands
        dtype = self._arrays[array].dtype
        at, near = self._place(offset)
        given = [self._value(each) for each in where]
        lanes = max([self._lanes if near else at.lanes, *(each.lanes for each in given[:1])])
        type_ = _vector(_memory(dtype), lanes)
        allowed = self._allowed(given[0] if given else None) if lanes > 1 else None
        if allowed is None and (near or lanes == 1):
            address = self._address(array, at)
            if given:
                spare = self.allocate(type_)
                self._keep(given[1], spare)
                test = f"select i1 {given[0].text}"
                address = self.emit(f"{test}, ptr {address}, ptr {spare}")
            text = self.emit(f"load {type_}, ptr {address}, align 1")
        else:
            kind = "load" if near else "gather"
            name, address, mask = self._masked(kind, array, at, allowed, lanes)
            other = self._in_memory(self._spread(given[1], lanes)) if given else "zeroinitializer"
            text = self.call(name, type_, address, "i32 1", mask, f"{type_} {other}")
        if dtype is dt.bool_:
            text = self.emit(f"icmp ne {type_} {text}, zeroinitializer")
        return _Value(text, dtype, lanes)

    def _in_memory(self, value: _Value) -> str:
        if value.dtype is not dt.bool_:
            return value.text
        return self.emit(f"zext {value.type} {value.text} to {_vector('i8', value.lanes)}")

    def _keep(self, value: _Value, address: str) -> None:
        type_ = _vector(_memory(value.dtype), value.lanes)
        self.do(f"store {type_} {self._in_memory(value)}, ptr {address}, align 1")

    def _store(self, array: str, offset: Expression, value: _Value) -> None:
        at, near = self._place(offset)
        lanes = self._lanes if near else max(at.lanes, value.lanes)
        value = self._spread(value, lanes)
        if lanes == 1 or (near and not self._mask):
            self._keep(value, self._address(array, at))
            return
        kind = "store" if near else "scatter"
        name, address, mask = self._masked(kind, array, at, self._mask, lanes)
        given = f"{_vector(_memory(value.dtype), lanes)} {self._in_memory(value)}"
        self.call(name, "void", given, address, "i32 1", mask)


def _conversion(source: DType, target: DType) -> str:
    """Return the instruction of a cast between dtypes of different types of LLVM's."""
    if source in dt.FLOATING:
        if target in dt.FLOATING:
            return "fpext" if target.itemsize > source.itemsize else "fptrunc"
        return "fptosi" if target in dt.SIGNED else "fptoui"
    if target in dt.FLOATING:
        return "sitofp" if source in dt.SIGNED else "uitofp"
    if source is dt.bool_ or target.itemsize > source.itemsize:
        return "sext" if source in dt.SIGNED else "zext"
    return "trunc"


def write(kernel: Kernel, attributes: str = "") -> str:
    """Return the module of a kernel, with a function ``run``.

    ``attributes``: of the function, such as the processor's.
    """
    return _Text(kernel).write(attributes)
