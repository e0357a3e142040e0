"""The dialect WGSL: statements as the text of a compute shader.

Indices are ``i32``: WGSL has no integers of 64 bits, and the caller checks that they fit. A bool
in memory is a word, 0 or 1, since memory has no bools. Each array is a binding of its own, in the
order of the kernel's; behind them come the numbers, as vectors of four, which is the spacing that
uniforms have.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import KernelRefusedError
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.machine import Machine
from tensorplug_loops.statements import Assign, Let, Update, arrays_read, inside, name_of
from tensorplug_webgpu.functions import EXTREMES, FUNCTIONS, PRODUCT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.plugin import DType, Expression, Scalar
    from tensorplug_loops.statements import (
        Array,
        Barrier,
        Declare,
        If,
        Kernel,
        Loop,
        Shared,
        Statement,
        Store,
    )

ALONE: Final = 64  # work-items of a work-group whose items are independent
ITEMS: Final = "items"  # a number behind the kernel's own: how many items there are
ZERO: Final = "zero"  # the number behind it: 0, which compilers do not know


class _Types(dict[dt.DType, str]):
    """Names of types. A kernel with others is refused."""

    def __missing__(self, dtype: dt.DType) -> str:
        raise KernelRefusedError(f"WGSL has no {dtype}")


_TYPES: Final = _Types(
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
    "bitwise_left_shift": "{} << u32({})",
    "bitwise_right_shift": "{} >> u32({})",
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
_ATOMIC: Final = {"sum": "atomicAdd", "max": "atomicMax", "min": "atomicMin"}

# What precedes a kernel's statements. Items that are independent are taken by a grid, each
# work-item every so many of them: starting one costs as much as some elements.
_GROUP: Final = f"""  let item = {{first}};
  if (item >= {ITEMS}) {{{{ return; }}}}"""
_ITEMS: Final = f"""  let apart = i32(groups.x * groups.y * {ALONE}u);
  for (var item = {{first}}; item < {ITEMS};
       item = select({ITEMS}, item + apart, {ITEMS} - item > apart)) {{{{"""


def machine(
    *,
    half: bool,
    cores: int,
    group_size: int,
    shared_bytes: int,
    team: int = 0,
    exchange: int = 0,
    steps: int = 0,
) -> Machine:
    """Return the description of a device, as far as schedules of loops need it.

    Elementary functions of WGSL are not accurate, so they are taken apart.
    """
    return Machine(
        neighbours=True,
        wide=False,
        cores=cores,
        group_size=group_size,
        team=team,
        exchange=exchange,
        shared_bytes=shared_bytes,
        narrow=frozenset({"float16"} if half else ()),
        atomics=frozenset({"int32", "uint32"}),
        long=False,
        steps=steps,
    )


def write(kernel: Kernel, space: str = "uniform") -> str:
    """Return the text of a kernel, which it calls ``run``; ``space``: that of its numbers."""
    return _Text(kernel, space).write()


_TIMES: Final = 4  # that a short loop's statements are written one after the other
_SHORT: Final = 24  # statements of one, at most


def _is_short(loop: Loop) -> bool:
    """Return whether counting costs about as much as what a loop does each time."""
    return len(loop.body) <= _SHORT and all(isinstance(each, Let | Assign) for each in loop.body)


_HALF: Final = re.compile(r"f16|\dh\b")  # the type, or a number of it


def _hidden(text: str) -> str:
    """Return a float32 that compilers know nothing of."""
    return f"bitcast<f32>(bitcast<u32>({text}) ^ {ZERO})"


class _Text:
    """Writes one kernel.

    ``_made``: the operation that made the value of a name. ``_atomic``: arrays whose elements are
    only used atomically, ``_bits``: those of floats. ``_words``: those of bools. ``_read``: those
    that are read. ``_arrays``: declarations of shared ones.
    """

    def __init__(self, kernel: Kernel, space: str) -> None:
        self._kernel = kernel
        self._space = space
        self._helpers: dict[str, str] = {}
        self._made: dict[str, str] = {}
        self._arrays: list[str] = []
        updates = [each for each in inside(kernel.body) if isinstance(each, Update)]
        self._atomic = {each.array for each in updates}
        floats = {each.name for each in kernel.arrays if each.dtype is dt.float32}
        self._bits = self._atomic & floats
        self._words = {each.name for each in kernel.arrays if each.dtype is dt.bool_}
        self._read = arrays_read(kernel.body)

    def write(self) -> str:
        kernel = self._kernel
        together = kernel.group_size > 1
        body = list(self._block(kernel.body, "  "))
        number = "workgroup_id" if together else "global_invocation_id"
        wide = "" if together else f" * {ALONE}u"
        first = f"i32(place.x + place.y * groups.x{wide})"
        numbers = [each.name for each in kernel.numbers] + [ITEMS, ZERO]
        size = -(-len(numbers) // 4)
        bindings = len(kernel.arrays)
        place = f"@group(0) @binding({bindings}) var<{self._space}>"
        text = "\n".join(
            [
                *(self._binding(at, array) for at, array in enumerate(kernel.arrays)),
                f"{place} numbers: array<vec4<i32>, {size}>;",
                *self._arrays,
                *self._helpers.values(),
                f"@compute @workgroup_size({kernel.group_size if together else ALONE})",
                f"fn run(@builtin({number}) place: vec3<u32>,",
                "    @builtin(num_workgroups) groups: vec3<u32>,",
                "    @builtin(local_invocation_index) local_index: u32) {",
                "  let member = i32(local_index);",
                *(self._number(at, name) for at, name in enumerate(numbers)),
                *(_GROUP if together else _ITEMS).format(first=first).splitlines(),
                *body,
                "}\n" if together else "}}\n",
            ]
        )
        enable = "enable f16;\n" if _HALF.search(text) else ""
        return f"// {kernel.name}\n{enable}{text}"

    def _binding(self, at: int, array: Array) -> str:
        element = "u32" if array.dtype is dt.bool_ else _TYPES[array.dtype]
        if array.name in self._bits:
            element = "u32"
        if array.name in self._atomic:
            element = f"atomic<{element}>"
        access = "read_write" if array.written else "read"
        return f"@group(0) @binding({at}) var<storage, {access}> {array.name}: array<{element}>;"

    def _number(self, at: int, name: str) -> str:
        own = self._kernel.numbers
        dtype = own[at].dtype if at < len(own) else dt.uint32 if name == ZERO else dt.int64
        value = f"numbers[{at // 4}].{'xyzw'[at % 4]}"
        if dtype is dt.bool_:
            value = f"{value} != 0"
        elif dtype is dt.float16:
            value = f"bitcast<vec2<f16>>({value}).x"
        elif _TYPES[dtype] != "i32":
            value = f"bitcast<{_TYPES[dtype]}>({value})"
        return f"  let {name} = {value};"

    # Statements ------------------------------------------------------------------------------

    def _block(self, body: Sequence[Statement], indent: str) -> Iterator[str]:
        for each in body:
            for line in getattr(self, f"_{type(each).__name__.lower()}")(each):
                yield indent + line

    def _let(self, each: Let) -> Iterator[str]:
        self._made[each.name] = each.value.op
        yield f"let {each.name} = {self._value(each.value)};"

    def _declare(self, each: Declare) -> Iterator[str]:
        yield f"var {each.name}: {_TYPES[each.value.dtype]} = {self._value(each.value)};"

    def _assign(self, each: Assign) -> Iterator[str]:
        yield f"{each.name} = {self._value(each.value)};"

    def _store(self, each: Store) -> Iterator[str]:
        element, value = f"{each.array}[{self._value(each.offset)}]", self._value(each.value)
        if each.array in self._words:
            value = f"select(0u, 1u, {value})"
        if each.array in self._atomic:
            yield f"atomicStore(&{element}, {value});"
        else:
            yield f"{element} = {value};"

    def _update(self, each: Update) -> Iterator[str]:
        at, value = self._value(each.offset), self._value(each.value)
        if each.op == "prod":
            yield from PRODUCT.format(array=each.array, at=at, value=value).splitlines()
            return
        if each.array not in self._bits:
            yield f"{_ATOMIC[each.op]}(&{each.array}[{at}], {value});"
            return
        sign = "<" if each.op == "min" else ">"
        yield from EXTREMES.format(array=each.array, at=at, value=value, sign=sign).splitlines()

    def _shared(self, each: Shared) -> Iterator[str]:
        space = "workgroup" if self._kernel.group_size > 1 else "private"
        element = _TYPES[each.dtype]
        self._arrays.append(f"var<{space}> {each.name}: array<{element}, {each.length}>;")
        yield from ()

    def _barrier(self, _: Barrier) -> Iterator[str]:
        yield "workgroupBarrier();"
        if any(each.written and each.name in self._read for each in self._kernel.arrays):
            yield "storageBarrier();"

    def _loop(self, each: Loop) -> Iterator[str]:
        index, start, stop = each.index, self._value(each.start), self._value(each.stop)
        if not _is_short(each):
            yield f"for (var {index}: i32 = {start}; {index} < {stop}; {index} += {each.step}) {{"
            yield from self._block(each.body, "  ")
            yield "}"
            return
        body, first = list(self._block(each.body, "    ")), f"{index}_first"
        yield f"var {first}: i32 = {start};"
        for times in (_TIMES, 1):
            end = f"{stop} - {(times - 1) * each.step}" if times > 1 else stop
            yield f"for (; {first} < {end}; {first} += {times * each.step}) {{"
            for at in range(times):
                yield f"  {{ let {index} = {first} + {at * each.step};"
                yield from body
                yield "  }"
            yield "}"

    def _if(self, each: If) -> Iterator[str]:
        yield f"if ({self._value(each.condition)}) {{"
        yield from self._block(each.then, "  ")
        yield "}"

    # Values ----------------------------------------------------------------------------------

    def _value(self, x: Expression) -> str:
        if x.op == "constant":
            assert x.value is not None
            return self._literal(x.value, x.dtype)
        if x.op in {"variable", "item", "member"}:
            return name_of(x)
        operands = [self._value(operand) for operand in x.operands]
        if x.op == "load":
            return self._load(x, operands)
        if x.op == "broadcast":
            return f"subgroupBroadcast({operands[0]}, {x.value}u)"
        if x.op in _TERMS and x.dtype.kind == "float":
            for at in _TERMS[x.op]:
                operands[at] = self._kept(x.op, x.operands[at], operands[at])
            if x.op == "subtract" and operands[0] == operands[1]:  # 0, but of infinities
                operands[1] = _hidden(operands[1])
        return f"({self._operation(x, operands)})"

    def _kept(self, op: str, operand: Expression, text: str) -> str:
        """Return an operand that compilers do not join with the operation."""
        made = self._made.get(name_of(operand)) if operand.op == "variable" else operand.op
        joins = made == op if op == "multiply" else made in _SUMS
        if not joins:
            return text
        return _hidden(text)

    def _load(self, x: Expression, operands: Sequence[str]) -> str:
        array, (offset, *guard) = name_of(x), operands
        value = f"{array}[{offset}]"
        if array in self._atomic:
            value = f"atomicLoad(&{value})"
            if array in self._bits:
                value = f"bitcast<f32>({value})"
        if array in self._words:
            value = f"({value} != 0u)"
        # Memory that is not there may be read: the device reads another place in its stead.
        return f"select({guard[1]}, {value}, {guard[0]})" if guard else value

    def _literal(self, value: Scalar, dtype: DType) -> str:
        if dtype is dt.bool_:
            return str(bool(value)).lower()
        type_ = _TYPES[dtype]
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

    def _operation(self, x: Expression, operands: Sequence[str]) -> str:
        source, type_ = x.operands[-1].dtype, _TYPES[x.dtype]
        if x.dtype is dt.uint8 and x.op not in {"where", "cast"}:
            raise KernelRefusedError(f"WGSL has no {x.op} of bytes")
        if x.op == "cast":
            return self._cast(operands[0], source, x.dtype)
        if x.op in _CALLS and not (x.op == "rest" and x.dtype in dt.INTEGER):
            name = _CALLS[x.op]
            return f"{self._help(name) if name in FUNCTIONS else name}({', '.join(operands)})"
        if x.op == "negative" and type_ == "u32":
            return f"0u - {operands[0]}"
        forms = _OF_BOOLS if source is dt.bool_ and x.op in _OF_BOOLS else _OPERATIONS
        return forms[x.op].format(*operands, type=type_)

    def _cast(self, text: str, source: DType, target: DType) -> str:
        a, b = _TYPES[source], _TYPES[target]
        if target is dt.uint8 and source is not dt.bool_:
            raise KernelRefusedError("WGSL has no bytes")
        if a == b:
            return text
        if b == "bool":
            zero = "0.0" if source.kind == "float" else "0"
            return f"{text} != {a}({zero})"
        return f"{b}({text})"
