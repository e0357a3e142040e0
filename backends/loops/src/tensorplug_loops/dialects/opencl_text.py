"""Values of OpenCL C as text: their types, numbers and operations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType
    from tensorplug_loops.statements import Combine

TYPES: Final = {
    dt.bool_: "uchar",  # in memory
    dt.int8: "char",
    dt.int16: "short",
    dt.int32: "int",
    dt.int64: "long",
    dt.uint8: "uchar",
    dt.uint16: "ushort",
    dt.uint32: "uint",
    dt.uint64: "ulong",
    dt.float16: "half",
    dt.float32: "float",
    dt.float64: "double",
}
_SIGNED: Final = {1: "char", 2: "short", 4: "int", 8: "long"}
UNSIGNED: Final = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}
COMPARED: Final = {"equal": "==", "less": "<", "less_equal": "<="}
_RING: Final = {"add": "+", "subtract": "-", "multiply": "*", "sum": "+", "prod": "*"}
_INFIX: Final = {
    "logical_and": "&",
    "logical_or": "|",
    "divide": "/",
    "quotient": "/",
    "rest": "%",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>",
}
_CALLS: Final = {
    **{name: name for name in ("fma", "floor", "ceil", "trunc", "sqrt", "copysign")},
    "round": "rint",
    "abs": "fabs",
}
_OF_BOOLS: Final = {"less": "!{0} & {1}", "less_equal": "!{0} | {1}", "equal": "{0} == {1}"}
_EXTREMES: Final = {"max": ">=", "min": "<="}
# A multiplication and an addition are never contracted: sums rely on their rounding errors.
_HEAD: Final = """#pragma OPENCL FP_CONTRACT OFF
#define INLINE static inline __attribute__((always_inline))"""
_EXTENSIONS: Final = {"half": "cl_khr_fp16", "atom_cmpxchg": "cl_khr_int64_base_atomics"}
_ATOMIC: Final = {"sum": "atomic_add", "max": "atomic_max", "min": "atomic_min"}
_LESS: Final = {"max": "value", "min": "a"}  # the less one of two zeros
# How elements meet in memory where there is no atomic operation for them.
_EXCHANGE: Final = """INLINE void {name}(global {type} *at, {type} value) {{
  {bits} seen = *(volatile global {bits} *)at, old;
  do {{
    old = seen;
    const {type} a = as_{type}(old);
    seen = {call}_cmpxchg((volatile global {bits} *)at, old, as_{bits}(({type})({combined})));
  }} while (seen != old);
}}"""


class Value(NamedTuple):
    """A value as text."""

    text: str
    dtype: DType
    lanes: int = 1


def program(title: str, text: str) -> str:
    """Return a whole program; the title is a comment in the first line."""
    extensions = [
        f"#pragma OPENCL EXTENSION {name} : enable"
        for word, name in _EXTENSIONS.items()
        if word in text
    ]
    return "\n".join([f"// {title}", *extensions, _HEAD, text])


def literal(value: Any, dtype: DType) -> str:
    """Return a number, rounded to ``dtype``, as text."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.array(value).astype(dtype.numpy)[()]
    if dtype is dt.bool_:
        return "1" if rounded else "0"
    ctype = TYPES[dtype]
    if dtype.kind != "float":
        if dtype in (dt.int32, dt.int64) and 0 <= rounded <= dt.int32.max:
            return f"{rounded}{'l' * (dtype is dt.int64)}"
        # The bits, not the number: C has no literal for the most negative one.
        bits = int(rounded) & ((1 << 8 * dtype.itemsize) - 1)
        return f"(({ctype}){bits:#x}{'ul' if dtype.itemsize == 8 else 'u'})"
    number = float(rounded)
    if not math.isfinite(number):
        special = "NAN" if math.isnan(number) else f"{'-' * (number < 0)}INFINITY"
        return f"(({ctype}){special})"
    # Hexadecimal digits name the number itself; compilers may round decimal ones differently.
    return f"({number.hex()}{'' if dtype is dt.float64 else 'f'})"


def type_of(value: Value) -> str:
    """Return the C type of a value."""
    ctype = "int" if value.dtype is dt.bool_ else TYPES[value.dtype]
    return ctype if value.lanes == 1 else f"{ctype}{value.lanes}"


def count(dtype: DType, lanes: int) -> str:
    """Return the vector of 0, 1, 2 and so on."""
    return f"({TYPES[dtype]}{lanes})({', '.join(map(str, range(lanes)))})"


def lane(value: Value, k: int) -> str:
    """Return the value of one lane."""
    return value.text if value.lanes == 1 else f"{value.text}.s{k:x}"


def gathered(
    array: str, at: Value, mask: Value | None, other: Value, lanes: int, *, ahead: bool
) -> str:
    """Return the elements of all lanes, which lie ``at`` these offsets, or ``ahead`` of one.

    ``mask``: in which lanes to read them; elsewhere they are ``other``.
    """
    elements = []
    for k in range(lanes):
        element = f"{array}[{lane(at, k)}{f' + {k}' * ahead}]"
        choice = f"{lane(mask, k)} ? {element} : {lane(other, k)}" if mask else element
        elements.append(choice)
    return ", ".join(elements)


def over(value: Value, lanes: int) -> Value:
    """Return a value for each lane."""
    if value.lanes == lanes:
        return value
    result = value._replace(lanes=lanes)
    sign = "-" if value.dtype is dt.bool_ else ""
    return result._replace(text=f"({type_of(result)})({sign}({value.text}))")


def stored(value: Value) -> Value:
    """Return a value as it is in memory."""
    if value.dtype is not dt.bool_:
        return value
    result = Value("", dt.uint8, value.lanes)
    sign = "" if value.lanes == 1 else "-"
    return result._replace(text=f"convert_{type_of(result)}({sign}({value.text}))")


def read(value: Value, dtype: DType) -> Value:
    """Return lanes of what is in memory."""
    if dtype is not dt.bool_:
        return value
    zero = f"(uchar{value.lanes})(0)"
    return value._replace(text=f"convert_int{value.lanes}(({value.text}) != {zero})", dtype=dtype)


def choose(condition: Value, a: Value, b: Value) -> Value:
    """Return one of two values in each lane."""
    test = condition.text
    if condition.lanes > 1 and a.dtype is not dt.bool_ and a.dtype.itemsize != 4:
        test = f"convert_{_SIGNED[a.dtype.itemsize]}{a.lanes}({test})"
    return a._replace(text=f"{test} ? {a.text} : {b.text}")


def combined(op: Combine, like: Value, a: str, b: str) -> str:
    """Return two numbers combined; ``like`` has their type."""
    if op in _RING:
        return _ring(like, a, _RING[op], b)
    return f"(({a} {_EXTREMES[op]} {b}) | ({a} != {a})) ? {a} : {b}"


def exchange(op: Combine, dtype: DType) -> tuple[str, str]:
    """Return the function that combines a number with one in memory, atomically, and its text."""
    if dtype in (dt.int32, dt.uint32) and op in _ATOMIC:
        return _ATOMIC[op], ""
    ctype, bits = TYPES[dtype], UNSIGNED[dtype.itemsize]
    made = combined(op, Value("", dtype), "a", "value")
    if op in _LESS and dtype.kind == "float":
        # 0 and -0 are equal, and may come in any order.
        made = f"a == value ? (signbit({_LESS[op]}) ? a : value) : {made}"
    name = f"{op}_{ctype}"
    call = "atom" if bits == "ulong" else "atomic"
    return name, _EXCHANGE.format(name=name, type=ctype, bits=bits, call=call, combined=made)


def _ring(like: Value, a: str, sign: str, b: str) -> str:
    """Return a sum, difference or product, which wraps: that of signed integers may not."""
    if like.dtype.kind == "float":
        return f"{a} {sign} {b}"
    unsigned, ctype = UNSIGNED[like.dtype.itemsize], type_of(like)
    if like.lanes == 1:
        wide = unsigned if like.dtype.itemsize == 8 else "uint"  # a long's
        return f"({ctype})(({wide}){a} {sign} ({wide}){b})"
    return f"as_{ctype}(as_{unsigned}{like.lanes}({a}) {sign} as_{unsigned}{like.lanes}({b}))"


def apply(op: str, dtype: DType, lanes: int, texts: Sequence[str], *, fits: bool = False) -> str:
    """Return an operation on numbers of ``dtype`` that gives such a number.

    ``fits``: sums, differences and products are in the range of ``dtype``, so compilers may take
    it that indices grow steadily.
    """
    a, b, like = texts[0], texts[-1], Value("", dtype, lanes)
    if op == "logical_not":
        return f"!{a}"
    if dtype is dt.bool_ and op in _OF_BOOLS:
        return _OF_BOOLS[op].format(a, b)
    if op in _CALLS:
        return f"{_CALLS[op]}({', '.join(texts)})"
    if op in _RING:
        return f"({a} {_RING[op]} {b})" if fits else _ring(like, a, _RING[op], b)
    ctype = type_of(like)
    if op == "negative":
        return f"-{a}" if dtype.kind == "float" else _ring(like, f"({ctype})(0)", "-", a)
    if op == "rest" and dtype.kind == "float":
        return f"fmod({a}, {b})"
    return f"({ctype})(~{a})" if op == "bitwise_not" else f"({ctype})({a} {_INFIX[op]} {b})"


def cast(value: Value, target: DType) -> Value:
    """Convert between bools, integers, which wrap, and floats."""
    source, lanes, text = value.dtype, value.lanes, value.text
    result = Value("", target, lanes)
    ctype, size = type_of(result), target.itemsize
    if target is dt.bool_:
        text = f"{text} != ({type_of(value)})(0)"
        if lanes > 1 and source.itemsize != 4:  # an int's
            text = f"convert_{ctype}({text})"
    elif source is dt.bool_:
        text = f"convert_{ctype}({'' if lanes == 1 else '-'}({text}))"
    elif "float" in (source.kind, target.kind):
        text = f"convert_{ctype}({text})"
    elif lanes == 1:
        text = f"({ctype})({text})"
    elif size > source.itemsize:
        like = (UNSIGNED if source.kind == "unsigned" else _SIGNED)[size]
        text = f"as_{ctype}(convert_{like}{lanes}({text}))"
    else:
        bits = UNSIGNED[source.itemsize]
        text = f"as_{bits}{lanes}({text})"
        if size < source.itemsize:  # a conversion of what does not fit is not defined
            mask = f"(({bits}){(1 << 8 * size) - 1:#x}u)"
            text = f"convert_{UNSIGNED[size]}{lanes}({text} & {mask})"
        text = f"as_{ctype}({text})"
    return result._replace(text=text)


def half(value: Value, which: bool) -> Value:  # noqa: FBT001  # of two
    """Return the first half of a value's lanes, or the second one."""
    text, lanes = f"{value.text}.{('lo', 'hi')[which]}", value.lanes // 2
    if lanes == 1 and value.dtype is dt.bool_:
        text = f"({text} != 0)"
    return Value(text, value.dtype, lanes)
