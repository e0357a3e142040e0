"""Scalar expressions as statements in C: one variable for each distinct operation.

Elements of float16 are computed with in float, and rounded where they are stored, and where an
expression casts to float16: results are at least as accurate as those of one kernel after the
other. Integers wrap: sums and products are taken in unsigned types (``ctypes.ring``).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import KernelRefusedError, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import ctypes, functions
from tensorplug_opencl.kernels.templates import FAR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.plugin import DType, Expression

__all__ = ["Statements", "write", "write_literal"]

# By operation, then by kind of dtype, or for any. {t} is the C type computed with, {r} the ring
# type; names in braces beside them are operands. Functions get a suffix for their type later.
_SAME: Final = "{t}"
_TEMPLATES: Final[dict[str, dict[str, str]]] = {
    "add": {"float": "{a} + {b}", "": "(({r}){a} + ({r}){b})"},
    "subtract": {"float": "{a} - {b}", "": "(({r}){a} - ({r}){b})"},
    "multiply": {"float": "{a} * {b}", "": "(({r}){a} * ({r}){b})"},
    "divide": {"": "{a} / {b}"},
    "floor_divide": {"float": "a_quotient({a}, {b}, a_near_mod({a}, {b}))"},
    "remainder": {"float": "a_rest({b}, a_near_mod({a}, {b}))"},
    "negative": {"float": "-{a}", "": "(0 - ({r}){a})"},
    "abs": {"float": "a_fabs({a})", "signed": "({a} < 0 ? 0 - ({r}){a} : ({r}){a})", "": "{a}"},
    "maximum": {"float": "{a} >= {b} || {a} != {a} ? {a} : {b}", "": "{a} >= {b} ? {a} : {b}"},
    "minimum": {"float": "{a} <= {b} || {a} != {a} ? {a} : {b}", "": "{a} <= {b} ? {a} : {b}"},
    "fma": {"": "a_fma({a}, {b}, {c})"},
    "floor": {"": "a_floor({a})"},
    "ceil": {"": "a_ceil({a})"},
    "trunc": {"": "a_trunc({a})"},
    "round": {"": "a_rint({a})"},
    "sqrt": {"": "a_sqrt({a})"},
    "copysign": {"": "a_copysign({a}, {b})"},
    "equal": {"": "{a} == {b}"},
    "less": {"": "{a} < {b}"},
    "less_equal": {"": "{a} <= {b}"},
    "logical_and": {"": "{a} & {b}"},
    "logical_or": {"": "{a} | {b}"},
    "logical_not": {"": "!{a}"},
    "bitwise_and": {"": "({a} & {b})"},
    "bitwise_or": {"": "({a} | {b})"},
    "bitwise_xor": {"": "({a} ^ {b})"},
    "bitwise_not": {"bool": "!{a}", "": "(~{a})"},
    "bitwise_left_shift": {"": "(({r}){b} < 8 * sizeof({r}) ? ({r}){a} << {b} : 0)"},
    "bitwise_right_shift": {
        "signed": "(({r}){b} < 8 * sizeof({t}) ? {a} >> {b} : {a} < 0 ? -1 : 0)",
        "": "({b} < 8 * sizeof({t}) ? {a} >> {b} : 0)",
    },
    "where": {"": "{a} ? {b} : {c}"},
    "floor_divide of integers": {"": "floor_div({a}, {b})"},
    "remainder of integers": {"": "floor_mod({a}, {b})"},
    **{
        name: {"": f"a_{name}({{a}})"}
        for name, count in expressions.FUNCTIONS.items()
        if count == 1
    },
    "erfc": {"": "erfc({a})"},
    "pow": {"": "a_power({a}, {b})"},
    "atan2": {"": "a_atan2({a}, {b})"},
}
# Where the quick form fails: the condition, and the form for every number.
_EXACT: Final = {
    "floor_divide": ("a_far_apart({a}, {b})", "floor_div({a}, {b})"),
    "remainder": ("a_far_apart({a}, {b})", "floor_mod({a}, {b})"),
    **{name: ("a_is_far({a})", f"{name}({{a}})") for name in ("sin", "cos", "tan")},
}
_OPERANDS: Final = "abc"


class Statements(NamedTuple):
    """Statements that assign to the results' names, and the functions that they call.

    ``called``: texts with the calls, by dtype. The quick statements assign to ``FAR`` too, if
    ``exact`` is not None: these are the statements that are right for every element.
    """

    quick: str
    exact: str | None
    called: Mapping[DType, Sequence[str]]

    @property
    def definitions(self) -> str:
        """The functions that the statements call."""
        return functions.define_typed(self.called)


def write(
    roots: Sequence[Expression], results: Sequence[str], parameters: Mapping[int, str]
) -> Statements:
    """Return the statements that compute ``roots``.

    ``parameters``: the C name by the number of a parameter.

    Raises:
        KernelRefusedError: an expression has complex numbers.

    """
    unified = expressions.unify(roots)
    operations = expressions.linearize(unified)
    for operation in operations:
        if operation.dtype in dt.COMPLEX:
            raise KernelRefusedError(f"it computes with real numbers, not with {operation.dtype}")
    has_far = any(_find_exact(operation) for operation in operations)
    writer = _Writer(operations, parameters)
    quick = writer.write(unified, results, exact=False)
    exact = writer.write(unified, results, exact=True) if has_far else None
    return Statements(quick, exact, writer.called)


def computed(dtype: DType) -> str:
    """Return the C type of a variable."""
    return "bool" if dtype is dt.bool_ else ctypes.computed(dtype)


def _find_exact(operation: Expression) -> tuple[str, str] | None:
    known = _EXACT.get(operation.op)
    return known if known and operation.dtype.kind == "float" else None


class _Writer:
    """The writer of the statements of some operations.

    ``called``: the text of calls by dtype, without suffixes.
    """

    def __init__(self, operations: Sequence[Expression], parameters: Mapping[int, str]) -> None:
        self._operations = operations
        self._parameters = parameters
        self.called: dict[DType, list[str]] = {}

    def write(self, roots: Sequence[Expression], results: Sequence[str], *, exact: bool) -> str:
        names: dict[int, str] = {}
        lines = []
        for at, operation in enumerate(self._operations):
            if operation.op == "parameter":
                names[id(operation)] = self._parameters[int(_value_of(operation))]
                continue
            if operation.op == "constant":
                names[id(operation)] = write_literal(operation.value, operation.dtype)
                continue
            operands = [names[id(operand)] for operand in operation.operands]
            names[id(operation)] = f"e{at}"
            ctype = computed(operation.dtype)
            text, condition = self._write_operation(operation, operands, exact=exact)
            lines.append(f"const {ctype} e{at} = {text};")
            if condition:
                lines.append(f"{FAR} |= {condition};")
        pairs = zip(results, roots, strict=True)
        lines += [f"{result} = {names[id(root)]};" for result, root in pairs]
        return "\n  ".join(lines)

    def _write_operation(
        self, operation: Expression, operands: Sequence[str], *, exact: bool
    ) -> tuple[str, str]:
        """Return the operation, and in the quick form the condition under which it fails."""
        if operation.op in ("cast", "bitcast"):
            convert = self._cast if operation.op == "cast" else _bitcast
            return convert(operation.operands[0].dtype, operation.dtype, operands[0]), ""
        dtype = operation.operands[-1].dtype
        template = _find_template(operation.op, dtype)
        known = _find_exact(operation)
        if known is None:
            return self._fill(template, operands, dtype, cast=operation.dtype), ""
        condition, slow = (self._fill(text, operands, dtype) for text in known)
        quick = self._fill(template, operands, dtype)
        return (f"{condition} ? {slow} : {quick}", "") if exact else (quick, condition)

    def _fill(
        self, template: str, operands: Sequence[str], dtype: DType, *, cast: DType | None = None
    ) -> str:
        ctype = computed(dtype)
        named = dict(zip(_OPERANDS, operands, strict=False))
        text = template.format(t=ctype, r=ctypes.ring(dtype), **named)
        if dtype.kind in ("signed", "unsigned") and cast is dtype:
            text = f"({ctype}){text}" if text.startswith("(") else f"({ctype})({text})"
        return self._call(text, dtype)

    def _call(self, text: str, dtype: DType) -> str:
        """Return ``text`` with calls of the functions for ``dtype``."""
        known = functions.names_for(dtype)
        suffix = functions.suffix_of(dtype)
        self.called.setdefault(dtype, []).append(text)
        return re.sub(r"\b\w+(?=\()", lambda at: at[0] + suffix if at[0] in known else at[0], text)

    def _cast(self, source: DType, target: DType, operand: str) -> str:
        ctype = computed(target)
        if target is dt.bool_:
            return f"{operand} != 0"
        if target is dt.float16:
            return f"(float)(half){operand}"
        if source.kind == "float" and target in dt.INTEGER:
            return f"({ctype})" + self._call(f"wrapped({operand})", source)
        return f"({ctype}){operand}"


def _find_template(op: str, dtype: DType) -> str:
    templates = _TEMPLATES[op]
    if dtype.kind in ("signed", "unsigned") and op in ("floor_divide", "remainder"):
        templates = _TEMPLATES[f"{op} of integers"]
    return templates.get(dtype.kind) or templates[""]


def _bitcast(source: DType, target: DType, operand: str) -> str:
    text = f"(half){operand}" if source is dt.float16 else operand
    result = f"as_{ctypes.stored(target)}({text})"
    return f"(float){result}" if target is dt.float16 else result


def _value_of(operation: Expression) -> Any:
    return operation.value


def write_literal(value: Any, dtype: DType) -> str:
    """Return a number, rounded to ``dtype``, as C text."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.array(value).astype(dtype.numpy)[()]
    if dtype is dt.bool_:
        return "1" if rounded else "0"
    if dtype.kind == "float":
        return _write_float(float(rounded), computed(dtype))
    bits = int(rounded) & ((1 << 8 * dtype.itemsize) - 1)
    return f"(({computed(dtype)}){bits:#x}{'ul' if dtype.itemsize == 8 else 'u'})"


def _write_float(value: float, ctype: str) -> str:
    if math.isnan(value):
        return f"(({ctype})NAN)"
    if math.isinf(value):
        return f"(({ctype}){'-' * (value < 0)}INFINITY)"
    return f"({value.hex()}{'f' * (ctype == 'float')})"
