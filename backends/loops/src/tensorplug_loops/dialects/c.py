"""Plain C: C99, without extensions, for whatever compiler there is.

``run`` does the work of some items, one after the other; what it takes is in ``write``. So do the
work-items of a work-group, from one barrier to the next. Compilers must let integers wrap, and
round each operation by itself (``FLAGS``).
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Final

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions
from tensorplug_loops.machine import Machine
from tensorplug_loops.statements import (
    Assign,
    Barrier,
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
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug.plugin import DType, Expression, Scalar
    from tensorplug_loops.statements import Array, Kernel, Statement

FLAGS: Final = ("-fwrapv", "-ffp-contract=off", "-fno-math-errno")
MACHINE: Final = Machine(registers=32, functions=frozenset(expressions.FUNCTIONS))

_BINARY: Final = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "quotient": "/",
    "equal": "==",
    "less": "<",
    "less_equal": "<=",
    "logical_and": "&&",
    "logical_or": "||",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>",
}
_UNARY: Final = {"negative": "-", "logical_not": "!", "bitwise_not": "~"}
_CALLS: Final = {
    **{name: name for name in expressions.FUNCTIONS},
    **{name: name for name in ("floor", "ceil", "trunc", "sqrt", "copysign")},
    "round": "rint",
    "abs": "fabs",
    "rest": "fmod",
}


class Text:
    """Writes the text of a kernel. A dialect that resembles C is a subclass.

    ``headers``: of the libraries. ``calls``: built-ins by operation, whose names get an ``f`` for
    float32. ``space``: the address space of arrays, with a blank behind it.
    """

    headers: ClassVar[Sequence[str]] = ("math", "stdbool", "stdint", "string")
    calls: ClassVar[Mapping[str, str]] = _CALLS
    space: ClassVar[str] = ""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._bools = {each.name for each in kernel.arrays if each.dtype is dt.bool_}
        self._written = {each.name for each in kernel.arrays if each.written}
        self._private: set[str] = set()  # arrays of an item
        self._helpers: dict[str, str] = {}
        self._members: set[str] = set()  # variables of which each work-item of a group has one
        self._index, self._lanes = "", 1  # of the loop with lanes
        self._vectors: set[str] = set()  # variables with lanes

    def write(self) -> str:
        """Return the whole text."""
        write = self._block if self.kernel.group_size == 1 else self._together
        body = list(write(self.kernel.body, "    "))
        headers = [f"#include <{name}.h>" for name in self.headers]
        first = [f"/* {self.kernel.name} */", *headers, *self._helpers.values()]
        return "\n".join([*first, *self.begin(), *body, *self.end(), ""])

    def begin(self) -> list[str]:
        """Return the head of the function, up to where ``item`` is the number of an item."""
        lines = [
            "void run(void *const *arrays, const int64_t *numbers, int64_t first, int64_t last) {"
        ]
        for at, array in enumerate(self.kernel.arrays):
            pointer = self.pointer_to(array)
            lines.append(f"  {pointer}{array.name} = arrays[{at}]; (void){array.name};")
        lines += [
            f"  const int64_t {number.name} = numbers[{at}];"
            for at, number in enumerate(self.kernel.numbers)
        ]
        lines.append("  for (int64_t item = first; item < last; item++) {")
        return lines if self.kernel.group_size == 1 else [*lines, "    int64_t member = 0;"]

    def end(self) -> list[str]:
        """Return what closes the function."""
        return ["  }", "}"]

    def pointer_to(self, array: Array) -> str:
        """Return the type of an array's address."""
        element = "uint8_t" if array.dtype is dt.bool_ else self.type_of(array.dtype)
        return f"{self.space}{'' if array.written else 'const '}{element} *"

    def type_of(self, dtype: DType) -> str:
        """Return the C type of a number."""
        if dtype is dt.bool_:
            return "bool"
        if dtype in dt.FLOATING:
            return {4: "float", 8: "double"}[dtype.itemsize]
        return f"{dtype.name}_t"

    def literal(self, value: Scalar, dtype: DType) -> str:
        """Return a constant."""
        if dtype is dt.bool_:
            return str(int(bool(value)))
        if dtype in dt.FLOATING:
            number = float(dtype.numpy.type(value))
            end = "f" if dtype is dt.float32 else ""
            if not math.isfinite(number):
                size = "NAN" if math.isnan(number) else "INFINITY"
                return f"(({self.type_of(dtype)}){'-' * (number < 0)}{size})"
            return f"({number.hex()}{end})"
        bits = 8 * dtype.itemsize
        wrapped = int(value) % (1 << bits)  # type: ignore[arg-type]  # not complex
        if dtype is dt.int64 and wrapped < 1 << 31:
            return f"INT64_C({wrapped})"
        return f"(({self.type_of(dtype)})UINT64_C({wrapped}))"

    def _block(self, body: Sequence[Statement], indent: str) -> Iterator[str]:
        for statement in body:
            for line in self._lines(statement):
                yield indent + line

    def _together(self, body: Sequence[Statement], indent: str) -> Iterator[str]:
        """Write what work-items of a group do one after the other, from barrier to barrier."""
        size = self.kernel.group_size
        for each in body:
            if isinstance(each, Let | Declare):
                self._members.add(each.name)
                yield f"{indent}{self.type_of(each.value.dtype)} {each.name}[{size}];"
        for waits, part in groupby(body, _waits):
            if not waits:
                yield f"{indent}for (member = 0; member < {size}; member++) {{"
                yield from self._block(list(part), indent + "  ")
                yield f"{indent}}}\n{indent}member = 0;"
                continue
            for each in part:
                if isinstance(each, Loop | If):
                    inside = each.then if isinstance(each, If) else each.body
                    yield f"{indent}{self._head(each)}"
                    yield from self._together(inside, indent + "  ")
                    yield f"{indent}}}"
                elif isinstance(each, Shared):
                    element = self.type_of(each.dtype)
                    yield f"{indent}{element} {each.name}[{each.length}];"

    def _head(self, each: Loop | If) -> str:
        if isinstance(each, If):
            return f"if ({self._value(each.condition)}) {{"
        begin, end, index = self._value(each.start), self._value(each.stop), each.index
        return f"for (int64_t {index} = {begin}; {index} < {end}; {index} += {each.step}) {{"

    def _lines(self, statement: Statement) -> Iterator[str]:
        vector = self._vector_line(statement)
        if vector:
            yield vector
            return
        match statement:
            case Let(name, value) | Declare(name, value) if name in self._members:
                yield f"{name}[member] = {self._value(value)};"
            case Let(name, value):
                yield f"const {self.type_of(value.dtype)} {name} = {self._value(value)};"
            case Declare(name, value):
                yield f"{self.type_of(value.dtype)} {name} = {self._value(value)};"
            case Assign(name, value):
                yield f"{self._named(name)} = {self._value(value)};"
            case Store(array, offset, value):
                yield f"{array}[{self._value(offset)}] = {self._value(value)};"
            case Shared(name, dtype, length):  # by nobody: there are no work-groups
                self._private.add(name)
                self._written.add(name)
                yield f"{self.type_of(dtype)} {name}[{length}];"
            case Loop(body=inside) | If(then=inside):
                before = self._index, self._lanes
                lanes = getattr(statement, "lanes", 1)
                self._index, self._lanes = (statement.index, lanes) if lanes > 1 else before  # type: ignore[union-attr]
                yield self._head(statement)
                yield from self._block(inside, "  ")
                yield "}"
                self._index, self._lanes = before
            case _:
                raise TypeError(f"C: {type(statement).__name__} is for other machines")

    def _vector_line(self, statement: Statement) -> str:
        """Return a statement on vectors, nothing for others."""
        if self._lanes == 1:
            return ""
        match statement:
            case Let(name, value) | Declare(name, value):
                lanes = statement.lanes if isinstance(statement, Declare) else 1
                if lanes > 1 or not self._is_uniform(value):
                    self._vectors.add(name)
                    return f"{self._vector(value.dtype)} {name} = {self._over(value)};"
            case Assign(name, value) if name in self._vectors:
                return f"{name} = {self._over(value)};"
            case Store(array, offset, value) if (near := self._near(offset)) is not None:
                return f"{self._whole(array, near, value.dtype)} = {self._over(value)};"
        return ""

    def _is_uniform(self, x: Expression) -> bool:
        if x.op == "load":
            return self._near(x.operands[0]) is None
        if x.op == "variable":
            return name_of(x) not in {self._index, *self._vectors}
        return all(map(self._is_uniform, x.operands))

    def _near(self, offset: Expression) -> str | None:
        """Return the offset of the first of neighbouring lanes."""
        if self._lanes == 1:
            return None
        rest = neighbouring(offset, self._index, self._is_uniform)
        return None if rest is None else f"{self._index} + {self._value(rest)}"

    def _vector(self, dtype: DType) -> str:
        """Return the type of a number for each lane, which compilers like GNU's have."""
        type_, lanes = self.type_of(dtype), self._lanes
        name = f"{type_}_x{lanes}"
        size = lanes * dtype.itemsize
        every = ", ".join(["x"] * lanes)
        self._helpers[name] = (
            f"typedef {type_} {name} __attribute__((vector_size({size})));\n"
            f"typedef {type_} loose_{name} __attribute__((vector_size({size}), "
            f"aligned({dtype.itemsize}), may_alias));\n"
            f"static inline {name} all_{name}({type_} x) {{ return ({name}){{{every}}}; }}"
        )
        return name

    def _whole(self, array: str, at: str, dtype: DType) -> str:
        space = "" if array in self._private else self.space
        const = "" if array in self._written else "const "
        return f"*({space}{const}loose_{self._vector(dtype)} *)({array} + {at})"

    def _over(self, x: Expression) -> str:
        """Return a value for each lane, if it is one that tiles of products have."""
        if self._is_uniform(x):
            return f"all_{self._vector(x.dtype)}({self._value(x)})"
        if x.op == "variable" and name_of(x) != self._index:
            return name_of(x)
        if x.op == "load":
            near = self._near(x.operands[0])
            assert near is not None
            return self._whole(name_of(x), near, x.dtype)
        operands = [self._over(operand) for operand in x.operands]
        if x.op == "fma":
            return f"{self._fused(x.dtype)}({', '.join(operands)})"
        if x.op not in {"add", "multiply"}:
            raise TypeError(f"C: {x.op} of lanes is for other machines")
        return f"({f' {_BINARY[x.op]} '.join(operands)})"

    def _fused(self, dtype: DType) -> str:
        """Return a function of vectors, which is as fast as the processor's instruction."""
        vector, end = self._vector(dtype), "f" if dtype is dt.float32 else ""
        self._helpers[f"fma {vector}"] = f"""#ifdef FP_FAST_FMA{end.upper()}
static inline {vector} fma_{vector}({vector} a, {vector} b, {vector} c) {{
  for (int i = 0; i < {self._lanes}; i++) c[i] = fma{end}(a[i], b[i], c[i]);
  return c;
}}
#else
#define fma_{vector}(a, b, c) ((a) * (b) + (c))
#endif"""
        return f"fma_{vector}"

    def _value(self, x: Expression) -> str:
        if x.op == "constant":
            assert x.value is not None
            return self.literal(x.value, x.dtype)
        if x.op in {"variable", "item", "member"}:
            return self._named(name_of(x))
        operands = [self._value(operand) for operand in x.operands]
        if x.op == "load":
            found = f"{x.value}[{operands[0]}]"
            if name_of(x) in self._bools:
                found = f"({found} != 0)"
            return found if len(operands) == 1 else f"({operands[1]} ? {found} : {operands[2]})"
        return f"({self.operation(x, operands)})"

    def _named(self, name: str) -> str:
        return f"{name}[member]" if name in self._members else name

    def operation(self, x: Expression, operands: Sequence[str]) -> str:
        """Return an operation on these texts, without brackets around it."""
        source, type_ = x.operands[-1].dtype, self.type_of(x.dtype)
        if x.op == "where":
            return "{} ? {} : {}".format(*operands)
        if x.op == "cast":
            return f"({type_}){operands[0]}"
        if x.op == "bitcast":
            return f"{self._bits(source, x.dtype)}({operands[0]})"
        if x.op == "fma":
            return "{} * {} + {}".format(*operands)
        if x.op == "rest" and x.dtype in dt.INTEGER:
            return f"({type_})({' % '.join(operands)})"
        if x.op in self.calls:
            end = "f" if source is dt.float32 else ""
            return f"{self.calls[x.op]}{end}({', '.join(operands)})"
        if x.op == "bitwise_left_shift":
            operands = [f"(u{type_.lstrip('u')}){operands[0]}", operands[1]]
        text = (
            f"{_UNARY[x.op]}{operands[0]}"
            if x.op in _UNARY
            else f" {_BINARY[x.op]} ".join(operands)
        )
        # C computes small integers as int.
        return f"({type_})({text})" if x.dtype in dt.INTEGER and x.dtype.itemsize < 8 else text

    def _bits(self, source: DType, target: DType) -> str:
        name = f"{target.name}_of_{source.name}"
        a, b = self.type_of(source), self.type_of(target)
        self._helpers[name] = (
            f"static inline {b} {name}({a} x) {{ {b} y; memcpy(&y, &x, sizeof y); return y; }}"
        )
        return name


def _waits(each: Statement) -> bool:
    """Return whether a statement is for all work-items of a group at once."""
    if isinstance(each, Loop | If):
        return any(map(_waits, each.then if isinstance(each, If) else each.body))
    return isinstance(each, Barrier | Shared)


def write(kernel: Kernel) -> str:
    """Return the text of a kernel: a function ``run``.

    It takes the addresses of the arrays, the numbers, and the first item and the one behind the
    last: ``void run(void *const *arrays, const int64_t *numbers, int64_t first, int64_t last)``.
    """
    return Text(kernel).write()
