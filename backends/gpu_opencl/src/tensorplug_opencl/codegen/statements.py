"""Scalar expressions as statements in C: one variable for each distinct operation.

The statements compute ``width`` neighbouring elements at once, in vectors, or one. CPU drivers are
fastest with vectors: they turn few loops over single elements into vector instructions. Elementary
functions are written by their expressions (``elementary.expand``) and call nothing of a driver's.

Elements of narrower floats are computed with in float, and rounded where they are stored, and
where an expression casts to their dtype. Integers wrap, so their sums are taken in unsigned types.
A boolean is 0 or 1 if ``width`` is 1; a vector of booleans is a vector of signed integers that are
0 or -1, and as long as the numbers that were compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.algorithms import elementary
from tensorplug.plugin import Expression, KernelRefusedError, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_loops import formats
from tensorplug_opencl.codegen import conversions, ctypes, numbers
from tensorplug_opencl.codegen.numbers import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.plugin import DType


_CALLS: Final = {
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "rint",
    "sqrt": "sqrt",
    "copysign": "copysign",
    "fma": "fma",
}
_RING: Final = {"add": "+", "subtract": "-", "multiply": "*"}
_BITS: Final = {
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "logical_and": "&",
    "logical_or": "|",
}
_COMPARED: Final = {"equal": "==", "less": "<", "less_equal": "<="}
_COMPARED_BOOLS: Final = {"equal": "{0} == {1}", "less": "!{0} & {1}", "less_equal": "!{0} | {1}"}


def expand(roots: Sequence[Expression]) -> list[Expression]:
    """Return the expressions with arithmetic in the place of elementary functions.

    A number of more digits than float32 has is rounded once, as it becomes bfloat16.
    """
    unified = expressions.unify(roots)
    new: dict[int, Expression] = {}
    for each in expressions.linearize(unified):
        operands = tuple(new[id(operand)] for operand in each.operands)
        made = Expression(each.op, each.dtype, operands, each.value) if operands else each
        if each.op in expressions.FUNCTIONS:
            made = elementary.expand(made)
        elif each.op == "cast" and each.dtype is dt.bfloat16:
            made = expressions.cast(formats.to_float32(operands[0]), dt.bfloat16)
        new[id(each)] = made
    return expressions.unify([new[id(root)] for root in unified])


class Writer:
    """The writer of statements that compute ``width`` elements at once."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._count = 0

    # Types -----------------------------------------------------------------------------------

    def wide(self, ctype: str) -> str:
        """Return the type of ``width`` numbers."""
        return numbers.wide(ctype, self.width)

    def type_of(self, value: Value) -> str:
        """Return the C type of a variable."""
        if value.dtype is not dt.bool_:
            return self.wide(ctypes.computed(value.dtype))
        return "int" if self.width == 1 else self.wide(numbers.SIGNED[value.nbytes])

    # Memory ----------------------------------------------------------------------------------

    def read(
        self, name: str, dtype: DType, stored: str, *, number: bool = False
    ) -> tuple[Value, str]:
        """Return the variable for a stored element ``stored``, and its declaration.

        ``number``: it is an argument, of the type that computes with it.
        """
        value = Value(name, dtype, 1 if dtype is dt.bool_ else 0)
        text = stored
        if dtype is dt.bool_:
            text = (
                f"({stored}) != 0"
                if self.width == 1
                else f"({stored}) != {self._splat('uchar', '0')}"
            )
        elif not number:
            text = ctypes.widen(dtype, stored, self.width)
        return value, f"const {self.type_of(value)} {name} = {text};"

    def stored(self, value: Value) -> str:
        """Return a variable as it is stored."""
        if value.dtype is dt.bool_:
            sign = "" if self.width == 1 else "-"
            return f"convert_{self.wide('uchar')}({sign}{value.name})"
        return ctypes.narrow(value.dtype, value.name, self.width)

    # Statements ------------------------------------------------------------------------------

    def write(
        self, roots: Sequence[Expression], parameters: Mapping[int, Value]
    ) -> tuple[list[str], list[Value]]:
        """Return the statements that compute ``roots``, and the variables that have them.

        ``parameters``: by number.

        Raises:
            KernelRefusedError: an expression has complex numbers.

        """
        unified = expand(roots)
        values: dict[int, Value] = {}
        lines = self._write_values(unified, values, parameters)
        return lines, [values[id(root)] for root in unified]

    def _write_values(
        self,
        roots: Sequence[Expression],
        values: dict[int, Value],
        parameters: Mapping[int, Value],
    ) -> list[str]:
        """Return the statements that compute ``roots``; add the variables to ``values``."""
        lines: list[str] = []
        for each in expressions.order(roots, lambda each: id(each) in values, rare=False):
            if each.dtype in dt.COMPLEX:
                raise KernelRefusedError(f"it computes with real numbers, not with {each.dtype}")
            if each.op == "parameter":
                values[id(each)] = parameters[_number(each)]
                continue
            if expressions.is_likely(each):
                lines += self._choose(each, values, parameters)
                continue
            operands = self._align([values[id(operand)] for operand in each.operands])
            value = self._name(each, operands)
            text = self._write_operation(each, operands)
            lines.append(f"const {self.type_of(value)} {value.name} = {text};")
            values[id(each)] = value
        return lines

    def _choose(
        self, each: Expression, values: dict[int, Value], parameters: Mapping[int, Value]
    ) -> list[str]:
        """Return the statements of a likely choice, with a branch around the other one."""
        condition, likely = self._align([values[id(operand)] for operand in each.operands[:2]])
        result = values[id(each)] = self._name(each, [condition, likely])
        inside = dict(values)
        statements = self._write_values([each.operands[2]], inside, parameters)
        operands = self._align([condition, likely, inside[id(each.operands[2])]])
        test = condition.name if self.width == 1 else f"all({condition.name})"
        return [
            f"{self.type_of(result)} {result.name} = {likely.name};",
            f"if (!{test}) {{",
            *statements,
            f"{result.name} = {self._write_operation(each, operands)};",
            "}",
        ]

    def _name(self, each: Expression, operands: Sequence[Value]) -> Value:
        """Return a new variable for the result of an operation."""
        value = Value(f"e{self._count}", each.dtype, self._size(each, operands))
        self._count += 1
        return value

    def _size(self, each: Expression, operands: Sequence[Value]) -> int:
        """Return the bytes of the elements of a vector of booleans; 0 for other results."""
        if each.dtype is not dt.bool_:
            return 0
        if not operands:
            return 1
        last = operands[-1]
        return last.nbytes if last.dtype is dt.bool_ else _width_of(last.dtype)

    def _align(self, operands: Sequence[Value]) -> list[Value]:
        """Return the operands with booleans as long as the numbers beside them."""
        if self.width == 1 or len(operands) < 2:  # nothing beside it
            return [*operands]
        sizes = [o.nbytes if o.dtype is dt.bool_ else _width_of(o.dtype) for o in operands]
        size = sizes[-1]
        return [
            Value(f"convert_{self.wide(numbers.SIGNED[size])}({o.name})", o.dtype, size)
            if o.dtype is dt.bool_ and own != size
            else o
            for o, own in zip(operands, sizes, strict=True)
        ]

    def _splat(self, ctype: str, literal: str) -> str:
        return numbers.splat(ctype, literal, self.width)

    def _write_operation(self, each: Expression, operands: Sequence[Value]) -> str:
        op, names = each.op, [operand.name for operand in operands]
        if op == "constant":
            return self._write_constant(each)
        if op == "cast":
            return conversions.cast(operands[0], each.dtype, self.width)
        if op == "bitcast":
            return conversions.bitcast(operands[0], each.dtype, self.width)
        if op == "where":
            return f"{names[0]} ? {names[1]} : {names[2]}"
        dtype = operands[-1].dtype
        if op in _COMPARED:
            if dtype is dt.bool_:
                return _COMPARED_BOOLS[op].format(*names)
            return f"{names[0]} {_COMPARED[op]} {names[1]}"
        if op == "logical_not" or (op == "bitwise_not" and dtype is dt.bool_):
            return f"!{names[0]}"
        if op in _CALLS:
            return f"{_CALLS[op]}({', '.join(names)})"
        if dtype.kind == "bool":
            return f"{names[0]} {_BITS[op]} {names[1]}"
        return (
            self._write_real(op, dtype, names)
            if dtype.kind == "float"
            else (self._write_integer(op, dtype, names))
        )

    def _write_real(self, op: str, dtype: DType, names: Sequence[str]) -> str:
        a, b = names[0], names[-1]
        if op in _RING or op == "divide":
            return f"{a} {_RING.get(op, '/')} {b}"
        if op in ("negative", "abs"):
            return f"-{a}" if op == "negative" else f"fabs({a})"
        if op in ("maximum", "minimum"):
            sign = ">" if op == "maximum" else "<"
            return f"(({a} {sign}= {b}) | ({a} != {a})) ? {a} : {b}"
        zero, one = (self._splat(ctypes.computed(dtype), text) for text in ("0", "1"))
        rest = f"fmod({a}, {b})"
        turned = f"(({rest} != 0) & (({b} < 0) != ({rest} < 0)))"
        if op == "remainder":
            rested = f"({turned} ? {rest} + {b} : {rest})"
            return f"{rest} == 0 ? copysign({zero}, {b}) : {rested}"
        above = f"(({a} - {rest}) / {b})"
        quotient = f"({turned} ? {above} - {one} : {above})"
        # The quotient is near an integer; fabs(a / 0) is infinite, and so is infinity / b.
        near = f"rint({quotient})"
        plain = f"({a} / {b})"
        special = (
            f"(({b} == 0) | (fabs({a}) == {self._splat(ctypes.computed(dtype), 'INFINITY')}))"
        )
        whole = f"({quotient} == 0 ? copysign({zero}, {plain}) : {near})"
        return f"{special} ? {plain} : {whole}"

    def _write_integer(self, op: str, dtype: DType, names: Sequence[str]) -> str:
        a, b = names[0], names[-1]
        wide = self.wide(ctypes.computed(dtype))
        if op in _RING:
            return self._wrap(dtype, a, _RING[op], b)
        if op == "negative":
            return self._wrap(dtype, f"({wide})(0)", "-", a)
        # C's abs of integers is unsigned, so that of the most negative number is itself.
        if op == "abs":
            return f"as_{wide}(abs({a}))"
        if op in ("maximum", "minimum"):
            return f"{op[:3]}({a}, {b})"
        if op in _BITS:
            return f"({wide})({a} {_BITS[op]} {b})"
        if op == "bitwise_not":
            return f"({wide})(~{a})"
        if op.endswith("_shift"):
            return self._write_shift(op, dtype, a, b)
        return self._write_quotient(op, dtype, a, b)

    def _wrap(self, dtype: DType, a: str, sign: str, b: str) -> str:
        """Return a sum, difference or product, which wraps."""
        ctype = ctypes.computed(dtype)
        if self.width == 1:
            ring = ctypes.ring(dtype)
            return f"({ctype})(({ring}){a} {sign} ({ring}){b})"
        unsigned = self.wide(f"u{numbers.SIGNED[dtype.itemsize]}")
        return f"as_{self.wide(ctype)}(as_{unsigned}({a}) {sign} as_{unsigned}({b}))"

    def _write_quotient(self, op: str, dtype: DType, a: str, b: str) -> str:
        """Return a quotient of integers or its remainder, by a divisor that no division traps."""
        ctype = ctypes.computed(dtype)
        wide, zero, one = self.wide(ctype), self._splat(ctype, "0"), self._splat(ctype, "1")
        none = f"({b} == {zero})"
        if dtype.kind == "unsigned":
            safe = f"({none} ? {one} : {b})"
            part = f"{a} {'/' if op == 'floor_divide' else '%'} {safe}"
            return f"{none} ? {zero} : ({wide})({part})"
        # The most negative number divided by -1 would overflow.
        turned = f"({b} == {self._splat(ctype, '-1')})"
        safe = f"(({none} | {turned}) ? {one} : {b})"
        rest = f"(({wide})({a} % {safe}))"
        across = f"(({rest} != {zero}) & (({rest} < {zero}) != ({safe} < {zero})))"
        if op == "remainder":
            return f"({wide})({across} ? ({wide})({rest} + {safe}) : {rest})"
        plain = f"(({wide})({a} / {safe}))"
        down = f"({across} ? ({wide})({plain} - {one}) : {plain})"
        back = self._wrap(dtype, f"({wide})(0)", "-", a)
        return f"({wide})({none} ? {zero} : ({turned} ? {back} : {down}))"

    def _write_shift(self, op: str, dtype: DType, a: str, b: str) -> str:
        ctype, bits = ctypes.computed(dtype), 8 * dtype.itemsize
        wide, u = self.wide(ctype), self.wide(f"u{numbers.SIGNED[dtype.itemsize]}")
        inside = f"(as_{u}({b}) < {self._splat(f'u{numbers.SIGNED[dtype.itemsize]}', str(bits))})"
        zero = self._splat(ctype, "0")
        if op == "bitwise_left_shift":
            return f"({wide})({inside} ? as_{wide}(({u})(as_{u}({a}) << as_{u}({b}))) : {zero})"
        end = zero
        if dtype.kind == "signed":
            end = f"({a} < {zero} ? {self._splat(ctype, '-1')} : {zero})"
        return f"({wide})({inside} ? ({wide})({a} >> {b}) : {end})"

    def _write_constant(self, each: Expression) -> str:
        literal = numbers.write_literal(each.value, each.dtype)
        if each.dtype is dt.bool_:
            sign = "" if self.width == 1 else "-"
            return self._splat("char", f"{sign}{literal}")
        return self._splat(ctypes.computed(each.dtype), literal)


def _width_of(dtype: DType) -> int:
    """Return the bytes of a number as it is computed with."""
    return dtype.compute.itemsize


def _number(parameter: Expression) -> int:
    number: Any = parameter.value
    return int(number)
