"""Values of the dialect WGSL: expressions as text, of one element or of several.

In a loop with lanes, what differs from lane to lane is a vector of WGSL's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import KernelRefusedError
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.statements import Update, inside, name_of, neighbouring
from tensorplug_webgpu.functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType, Expression, Scalar
    from tensorplug_loops.statements import Kernel

LANES: Final = 4  # elements of an array that are read and written at once
PARTS: Final = "xyzw"
ZERO: Final = "zero"  # a number of all kernels: 0, which compilers do not know


class _Types(dict[dt.DType, str]):
    """Names of types. A kernel with others is refused."""

    def __missing__(self, dtype: dt.DType) -> str:
        raise KernelRefusedError(f"WGSL has no {dtype}")


TYPES: Final = _Types(
    {
        dt.bool_: "bool",
        dt.int32: "i32",
        dt.int64: "i32",  # an index
        dt.uint8: "u32",  # of a bool
        dt.uint32: "u32",
        dt.float16: "f16",
        dt.float32: "f32",
    }
)
_SIGNS: Final = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "quotient": "/",
    "rest": "%",
    "equal": "==",
    "less": "<",
    "less_equal": "<=",
    "logical_and": "&",
    "logical_or": "|",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_OPERATIONS: Final = {
    **{op: f"{{}} {sign} {{}}" for op, sign in _SIGNS.items()},
    "negative": "-{}",
    "logical_not": "!{}",
    "bitwise_not": "~{}",
    "bitwise_left_shift": "{} << {words}({})",
    "bitwise_right_shift": "{} >> {words}({})",
    "bitcast": "bitcast<{type}>({})",
    "where": "select({2}, {1}, {0})",
}
_OF_BOOLS: Final = {"less": "!{} & {}", "less_equal": "!{} | {}"}
_CALLS: Final = {
    **{name: name for name in ("fma", "floor", "ceil", "trunc", "round", "sqrt", "abs")},
    "copysign": "copy_sign",
    "rest": "rest",
}
# A compiler of WGSL may take (a + b) - b for a, and joins the factors of products.
_SUMS: Final = frozenset({"add", "subtract", "fma"})
_TERMS: Final = {"add": (0, 1), "subtract": (0, 1), "fma": (2,), "multiply": (0, 1)}


def typed(element: str, lanes: int) -> str:
    """Return the type of one element, or of several."""
    return element if lanes == 1 else f"vec{lanes}<{element}>"


def _hidden(text: str, lanes: int) -> str:
    """Return a float32, or several, that compilers know nothing of."""
    floats, words = typed("f32", lanes), typed("u32", lanes)
    zero = ZERO if lanes == 1 else f"{words}({ZERO})"
    return f"bitcast<{floats}>(bitcast<{words}>({text}) ^ {zero})"


def _may_be_finite(x: Expression) -> bool:
    return x.op != "constant" or math.isfinite(float(x.value))  # type: ignore[arg-type]


class Values:
    """Writes the values of one kernel.

    ``_made``: the operation that made the value of a name. ``_atomic``: arrays whose elements are
    only used atomically, ``_bits``: those of floats. ``_words``: those of bools. ``_strips``:
    those that are read and written four elements at a time. ``_lanes``: of names that have some.
    ``_index``: the name of their loop's.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._helpers: dict[str, str] = {}
        self._made: dict[str, str] = {}
        updates = [each for each in inside(kernel.body) if isinstance(each, Update)]
        self._atomic = {each.array for each in updates}
        floats = {each.name for each in kernel.arrays if each.dtype is dt.float32}
        self._bits = self._atomic & floats
        self._words = {each.name for each in kernel.arrays if each.dtype is dt.bool_}
        self._strips = {each.name for each in kernel.arrays if each.strip}
        self._lanes: dict[str, int] = {}
        self._index = ""

    def lanes_of(self, x: Expression) -> int:
        """Return how many elements a value has."""
        if x.op == "variable":
            return self._lanes.get(name_of(x), 1)
        lanes = max(map(self.lanes_of, x.operands), default=1)
        return lanes // 2 if x.op == "half" else lanes

    def spread(self, x: Expression, lanes: int) -> str:
        """Return the text of a value that has so many elements, or else the same in all."""
        text = self.value(x)
        alike = self.lanes_of(x) == lanes
        return text if alike else f"{typed(TYPES[x.dtype], lanes)}({text})"

    def first(self, offset: Expression) -> str | None:
        """Return where the elements of lanes begin, if they are neighbours."""
        if not self._index:
            return None
        rest = neighbouring(offset, self._index, lambda x: self.lanes_of(x) == 1)
        return None if rest is None else f"({self._index} + {self.value(rest)})"

    def value(self, x: Expression) -> str:
        """Return the text of a value."""
        if x.op == "constant":
            assert x.value is not None
            return self._literal(x.value, x.dtype)
        if x.op in {"variable", "item", "member"}:
            name = name_of(x)
            return f"(vec4<i32>({name}) + vec4<i32>(0, 1, 2, 3))" if name == self._index else name
        if x.op == "load":
            return self._load(x)
        if x.op == "half":
            (whole,) = x.operands
            parts = {2: "xy", 4: ("xy", "zw")}[self.lanes_of(whole)]
            return f"{self.value(whole)}.{parts[int(x.value)]}"  # type: ignore[arg-type]  # 0 or 1
        lanes = self.lanes_of(x)
        operands = [self.spread(operand, lanes) for operand in x.operands]
        if x.op == "broadcast":
            return f"subgroupBroadcast({operands[0]}, {x.value}u)"
        if x.op in _TERMS and x.dtype.kind == "float":
            operands = self._kept_apart(x, operands, lanes)
        return f"({self._operation(x, operands, lanes)})"

    def _kept_apart(self, x: Expression, operands: list[str], lanes: int) -> list[str]:
        """Return a sum's or a product's operands; hidden where compilers would reckon ahead."""
        if x.op == "multiply" and not all(map(_may_be_finite, x.operands)):  # 0 by infinity
            return [_hidden(operand, lanes) for operand in operands]
        for at in _TERMS[x.op]:
            if self._joins(x.op, x.operands[at]):
                operands[at] = _hidden(operands[at], lanes)
        if x.op == "subtract" and operands[0] == operands[1]:  # 0, but of infinities
            operands[1] = _hidden(operands[1], lanes)
        return operands

    def _joins(self, op: str, operand: Expression) -> bool:
        """Return whether compilers join an operand with the operation."""
        made = self._made.get(name_of(operand)) if operand.op == "variable" else operand.op
        return made == op if op == "multiply" else made in _SUMS

    def _load(self, x: Expression) -> str:
        array, (offset, *guard) = name_of(x), x.operands
        lanes, first = self.lanes_of(x), self.first(offset)
        word = "u32" if array in self._words else TYPES[x.dtype]
        if first is not None and array in self._strips:
            value = f"{array}[{first} / {LANES}]"
        elif self.lanes_of(offset) > 1:
            at = self.value(offset)
            value = ", ".join([f"{array}[{at}.{part}]" for part in PARTS])
            value = f"{typed(word, lanes)}({value})"
        else:
            value = f"{array}[{self.value(offset)}]"
        if array in self._atomic:
            value = f"atomicLoad(&{value})"
            if array in self._bits:
                value = f"bitcast<f32>({value})"
        if array in self._words:
            value = f"({value} != {typed('u32', self.lanes_of(offset))}(0u))"
        if not guard:
            return value
        # Memory that is not there may be read: the device reads another place in its stead.
        condition, other = (self.spread(each, lanes) for each in guard[:2])
        if lanes > self.lanes_of(offset):
            value = f"{typed(TYPES[x.dtype], lanes)}({value})"
        return f"select({other}, {value}, {condition})"

    def _literal(self, value: Scalar, dtype: DType) -> str:
        if dtype is dt.bool_:
            return str(bool(value)).lower()
        type_ = TYPES[dtype]
        if dtype.kind == "float":
            number = float(dtype.numpy.type(value))
            if math.isfinite(number):
                zero = math.copysign(1, number) < 0 and not number
                # naga takes no hexadecimal float16.
                text = f"{number.hex()}f" if dtype is dt.float32 else f"{number!r}h"
                return f"(-{text.removeprefix('-')})" if zero or number < 0 else text
            name = "not_a_number" if math.isnan(number) else "infinity"
            made = f"{'-' * (number < 0)}bitcast<f32>({self._help(name)})"
            return f"({made})" if dtype is dt.float32 else f"f16({made})"
        number = int(value)  # type: ignore[arg-type]  # not complex
        if dtype is dt.int64 and abs(number) > dt.int32.max:
            raise KernelRefusedError(f"WGSL has no integer {number}")
        bits = number & 0xFFFFFFFF
        if type_ == "u32":
            return f"{bits}u"
        return str(bits) if bits < 1 << 31 else f"bitcast<i32>({bits}u)"

    def _help(self, name: str) -> str:
        text = FUNCTIONS[name]
        if "not_a_number)" in text:
            self._help("not_a_number")
        self._helpers[name] = text
        return name

    def _operation(self, x: Expression, operands: Sequence[str], lanes: int) -> str:
        source, type_ = x.operands[-1].dtype, typed(TYPES[x.dtype], lanes)
        if x.dtype is dt.uint8 and x.op not in {"where", "cast"}:
            raise KernelRefusedError(f"WGSL has no {x.op} of bytes")
        if x.op == "cast":
            return self._cast(operands[0], source, x.dtype, lanes)
        if x.op in _CALLS and not (x.op == "rest" and x.dtype in dt.INTEGER):
            name = _CALLS[x.op]
            if name not in FUNCTIONS:
                return f"{name}({', '.join(operands)})"
            self._help(name)
            parts = [""] if lanes == 1 else [f".{part}" for part in PARTS[:lanes]]
            calls = [f"{name}({', '.join([each + part for each in operands])})" for part in parts]
            return f"{type_}({', '.join(calls)})"
        if x.op == "negative" and x.dtype in dt.UNSIGNED:
            return f"{type_}(0u) - {operands[0]}"
        forms = _OF_BOOLS if source is dt.bool_ and x.op in _OF_BOOLS else _OPERATIONS
        return forms[x.op].format(*operands, type=type_, words=typed("u32", lanes))

    def _cast(self, text: str, source: DType, target: DType, lanes: int) -> str:
        a, b = TYPES[source], TYPES[target]
        if target is dt.uint8 and source is not dt.bool_:
            raise KernelRefusedError("WGSL has no bytes")
        if a == b:
            return text
        if b == "bool":
            zero = "0.0" if source.kind == "float" else "0"
            return f"{text} != {typed(a, lanes)}({a}({zero}))"
        return f"{typed(b, lanes)}({text})"
