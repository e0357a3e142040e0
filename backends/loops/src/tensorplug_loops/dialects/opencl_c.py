"""The dialect OpenCL C 1.2: statements as the text of a kernel.

Lanes are OpenCL's vectors, of at most ``MOST_LANES`` numbers. A boolean is an int, 0 or 1; of
lanes, 0 or -1. Vectors are read and written through packed structs, which no driver makes a call
of, as some do of ``vload``. A kernel takes for each array its memory, and the number of its first
element there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug_loops import statements as st
from tensorplug_loops.dialects import opencl_text as c
from tensorplug_loops.dialects.opencl_text import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.plugin import DType, Expression

MOST_LANES: Final = 16
_ALIGNED: Final = "__attribute__((aligned(16)))"
_LOOSE: Final = "typedef struct __attribute__((packed)) {{ {0}{1} v; }} loose_{0}{1};"


def write(kernel: st.Kernel, title: str, *, narrow: bool = False, apart: bool = True) -> str:
    """Return the program of a kernel, which it calls ``run``.

    Args:
        kernel: what to write. Its arguments are two for each array, memory and a ``long``, then
            how many work-items (or work-groups) there are, then the numbers.
        title: a comment in the first line.
        narrow: all that is computed of the numbers that are int64, and of indices, fits in 32
            bits, and these numbers are passed as such.
        apart: no array that is written shares memory with another one.

    """
    return _Writer(narrow=narrow).write(kernel, title, apart=apart)


def write_function(name: str, root: Expression, operands: Mapping[str, DType]) -> str:
    """Return a function, for a program by hand, that computes an expression of its operands.

    ``root`` has ``statements.OPERATIONS`` alone (``schedule.lowering`` makes such), and variables
    for the operands, whose dtypes are by name.
    """
    return _Writer(narrow=False).write_function(name, root, operands)


class _Writer:
    """The writer of one kernel.

    ``_lanes``, ``_index``: of the loop with lanes around; ``_mask``: which lanes run, if not all;
    ``_reads``: which may read.
    """

    def __init__(self, *, narrow: bool) -> None:
        self._narrow = dt.int32 if narrow else dt.int64
        self._items, self._space = "get_global_id(0)", "private"
        self._locals: dict[str, str] = {}  # declarations of arrays that work-items share
        self._lines: list[str] = []
        self._first: dict[str, None] = {}  # declarations before the kernel, in their order
        self._names: dict[str, Value] = {}
        self._ints: dict[str, Value] = {}  # what longs were before they were cast
        self._arrays: dict[str, DType] = {}
        self._count = 0
        self._lanes, self._index = 1, ""
        self._one_by_one = False  # in a loop whose lanes follow one another
        self._mask: Value | None = None
        self._reads: Value | None = None
        # Arrays that may be written again, since nothing reads them.
        self._single: set[str] = set()
        self._hint = ""

    def write(self, kernel: st.Kernel, title: str, *, apart: bool) -> str:
        parameters = []
        for array in kernel.arrays:
            self._arrays[array.name] = array.dtype
            ctype = f"global {'' if array.written else 'const '}{c.TYPES[array.dtype]}"
            parameters.append(f"{ctype} *{'restrict ' if apart else ''}{array.name}")
            parameters.append(f"const long {array.name}_at")
        for number in kernel.numbers:
            dtype = self._narrow if number.dtype is dt.int64 else number.dtype
            self._names[number.name] = Value(number.name, dtype)
            parameters.append(f"const {c.TYPES[dtype]} {number.name}")
        parameters.insert(2 * len(kernel.arrays), f"const {c.TYPES[self._narrow]} items")
        if kernel.group_size > 1:  # all of a group go on, or none
            self._items, self._space = "get_group_id(0)", "local"
        self._emit(f"if ({self._items} >= items) return;")
        if apart:
            written = {each.name for each in kernel.arrays if each.written}
            self._single = set() if written & st.arrays_read(kernel.body) else written
        self._block(kernel.body)
        joined = ",\n  ".join(parameters)
        text = "\n".join(
            [
                *self._first,
                f"{self._hint}kernel void run(\n  {joined})\n{{",
                *(f"{array.name} += {array.name}_at;" for array in kernel.arrays),
                *self._locals.values(),
                *self._lines,
                "}\n",
            ]
        )
        return c.program(title, text)

    def write_function(self, name: str, root: Expression, operands: Mapping[str, DType]) -> str:
        self._names = {own: Value(own, dtype) for own, dtype in operands.items()}
        parameters = ", ".join(f"{c.type_of(each)} {own}" for own, each in self._names.items())
        result = self._value(root)
        lines = "\n".join([*self._lines, f"return {result.text};"])
        return f"\nINLINE {c.type_of(result)} {name}({parameters}) {{\n{lines}\n}}"

    # Statements ------------------------------------------------------------------------------

    def _block(self, body: Sequence[st.Statement]) -> None:
        known = dict(self._names)
        for each in body:
            getattr(self, f"_{type(each).__name__.lower()}")(each)
        self._names = known

    def _emit(self, line: str) -> None:
        self._lines.append(line)

    def _enter(self, name: str, value: Value, access: str = "const ") -> Value:
        """Make a variable."""
        self._emit(f"{access}{c.type_of(value)} {name} = {value.text};")
        self._names[name] = value._replace(text=name)
        return self._names[name]

    def _let(self, each: st.Let) -> None:
        value, cast = self._enter(each.name, self._value(each.value)), each.value.op == "cast"
        if value.dtype is dt.int32:
            self._ints[each.name] = value
        elif value.dtype is dt.int64 and cast and each.value.operands[0].op == "variable":
            before = self._ints.get(str(each.value.operands[0].value))
            if before is not None:
                self._ints[each.name] = before

    def _declare(self, each: st.Declare) -> None:
        lanes = 1 if self._one_by_one else each.lanes
        value = self._converted(self._value(each.value), each.value.dtype)
        self._enter(each.name, c.over(value, lanes), "")

    def _assign(self, each: st.Assign) -> None:
        variable = self._names[each.name]
        value = c.over(self._converted(self._value(each.value), variable.dtype), variable.lanes)
        if self._mask is not None and variable.lanes > 1:
            value = c.choose(self._mask, value, variable)
        self._emit(f"{each.name} = {value.text};")

    def _store(self, each: st.Store) -> None:
        array, dtype = each.array, self._arrays[each.array]
        value, near = self._value(each.value), self._neighbours(each.offset)
        value = self._converted(value, dtype)
        if near is not None and (
            self._mask is None or (self._reads is None and array in self._single)
        ):
            whole = c.stored(c.over(value, self._lanes))
            self._emit(f"{self._loose(array, near)} = {whole.text};")
            return
        self._each_lane(each.offset, self._named(c.stored(value)), f"{array}[{{}}] = {{}};")

    def _update(self, each: st.Update) -> None:
        dtype = self._arrays[each.array]
        value = self._named(self._converted(self._value(each.value), dtype))
        call = f"{self._exchange(each.op, dtype)}({each.array} + {{}}, {{}});"
        self._each_lane(each.offset, value, call)

    def _each_lane(self, offset: Expression, value: Value, text: str) -> None:
        """Write a statement for each lane that runs, or one if all is uniform."""
        at = self._named(self._value(offset))
        alone = at.lanes == value.lanes == 1 and self._mask is None
        for k in range(1 if alone else self._lanes):
            condition = "" if self._mask is None else f"if ({c.lane(self._mask, k)}) "
            self._emit(condition + text.format(c.lane(at, k), c.lane(value, k)))

    def _exchange(self, op: st.Combine, dtype: DType) -> str:
        """Return the name of a function that combines a number with one in memory, atomically."""
        name, text = c.exchange(op, dtype)
        if text:
            self._first[text] = None
        return name

    def _if(self, each: st.If) -> None:
        condition, before = self._named(self._value(each.condition)), (self._mask, self._reads)
        if condition.lanes > 1:
            self._reads = self._both(condition, self._reads)
            self._mask = condition = self._both(condition, self._mask)
        test = condition.text if condition.lanes == 1 else f"any({condition.text})"
        self._emit(f"if ({test}) {{")
        self._block(each.then)
        self._mask, self._reads = before
        self._emit("}")

    def _both(self, a: Value, b: Value | None) -> Value:
        """Return in which lanes both conditions hold."""
        return a if b is None else self._named(a._replace(text=f"{a.text} & {b.text}"))

    def _loop(self, each: st.Loop) -> None:
        start, stop = self._named(self._value(each.start)), self._named(self._value(each.stop))
        index, lanes, step = each.index, each.lanes, each.step
        again = each.again and not each.whole and lanes > 1
        counter = f"{index}c" if again else index
        masked = not each.whole and any(name in self._names for name in st.assigned(each.body))
        if again:
            masked = masked or not st.arrays_written(each.body) <= self._single
        if lanes > 1 and not each.whole and not (masked or again):
            lanes = step = 1  # lanes that write nothing outside may follow one another
        ctype = c.TYPES[self._narrow]
        head = f"{ctype} {counter} = {start.text}; {counter} < {stop.text}; {counter} += {step}"
        self._emit(f"for ({head}) {{")
        if again:
            last = f"{stop.text} - {lanes}"
            self._emit(f"const {ctype} {index} = {counter} < {last} ? {counter} : {last};")
        self._names[index] = Value(index, self._narrow, lanes)
        if lanes == 1:
            before, self._one_by_one = self._one_by_one, self._one_by_one or each.lanes > 1
            self._block(each.body)
            self._one_by_one = before
        else:
            self._lanes, self._index = lanes, index
            self._hint = f"__attribute__((vec_type_hint(float{lanes})))\n"
            if masked:
                sign, end = (">=", counter) if again else ("<", stop.text)
                count = f"(int{lanes})((int)({end} - {index}))"
                mask = Value(f"{c.count(dt.int32, lanes)} {sign} {count}", dt.bool_, lanes)
                self._mask = self._named(mask)
                self._reads = None if again else self._mask
            self._block(each.body)
            self._lanes, self._index, self._mask, self._reads = 1, "", None, None
        self._emit("}")

    def _shared(self, each: st.Shared) -> None:
        self._arrays[each.name] = each.dtype
        type_ = f"{self._space} {c.TYPES[each.dtype]}"
        # So that compilers read four neighbours at once.
        self._locals[each.name] = f"{type_} {each.name}[{each.length}] {_ALIGNED};"

    def _barrier(self, _: st.Barrier) -> None:
        self._emit("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")

    # Values ----------------------------------------------------------------------------------

    def _named(self, value: Value) -> Value:
        """Return a value as a variable."""
        if value.text.isidentifier():
            return value
        self._count += 1
        return self._enter(f"e{self._count}", value)

    def _converted(self, value: Value, dtype: DType) -> Value:
        """Return an index as wide as ``dtype``; other values as they are."""
        return value if value.dtype is dtype else c.cast(value, dtype)

    def _value(self, root: Expression) -> Value:
        """Write the statements that compute a value; return it."""
        values: dict[int, Value] = {}
        stack = [(root, False)]
        while stack:  # not recursion: chains may be long
            each, entered = stack.pop()
            if id(each) in values:
                continue
            if each.op == "load":
                values[id(each)] = self._named(self._load(each))
            elif entered or not each.operands:
                made = self._operation(each, [values[id(operand)] for operand in each.operands])
                is_constant = each.op == "constant"
                values[id(each)] = made if is_constant or each is root else self._named(made)
            else:
                stack.append((each, True))
                stack += [(operand, False) for operand in each.operands]
        return values[id(root)]

    def _uniform(self, value: Expression) -> bool:
        if value.op == "variable":
            return self._names[str(value.value)].lanes == 1
        return value.op != "load" and all(map(self._uniform, value.operands))

    def _neighbours(self, offset: Expression) -> str | None:
        """Return the first lane's offset, if the lanes are neighbours."""
        if self._lanes == 1:
            return None
        more = st.neighbouring(offset, self._index, self._uniform)
        return None if more is None else f"({self._index} + {self._value(more).text})"

    def _loose(self, array: str, at: str) -> str:
        ctype, lanes = c.TYPES[self._arrays[array]], self._lanes
        self._first[_LOOSE.format(ctype, lanes)] = None
        space = self._space if array in self._locals else "global"
        return f"(({space} loose_{ctype}{lanes} *)({array} + {at}))->v"

    def _load(self, each: Expression) -> Value:
        name, dtype, lanes = str(each.value), each.dtype, self._lanes
        offset, *guard = each.operands
        size = guard.pop() if len(guard) > 2 else None
        near, mask = self._neighbours(offset), self._reads
        at = Value(near, dt.int64) if near else self._named(self._value(offset))
        others = [self._named(self._value(part)) for part in guard]
        if near is None and max(value.lanes for value in (at, *others)) == 1:
            element = f"{name}[{at.text}]" + " != 0" * (dtype is dt.bool_)
            alone = f"{others[0].text} ? {element} : {others[1].text}" if guard else element
            return Value(alone, dtype)
        kept = dt.uint8 if dtype is dt.bool_ else dtype
        other = Value(c.literal(0, kept), kept)
        alike = guard and mask is None and others[0].lanes == 1
        if guard:
            other = self._named(c.over(c.stored(self._converted(others[1], dtype)), lanes))
        if guard and not alike:
            mask = self._both(self._named(c.over(others[0], lanes)), mask)
        if near is not None and mask is None:
            loaded = Value(self._loose(name, near), kept, lanes)
        else:
            elements = c.gathered(name, at, mask, other, lanes, ahead=near is not None)
            loaded = Value(f"({c.TYPES[kept]}{lanes})({elements})", kept, lanes)
        if alike:
            return c.read(self._chosen(others[0], loaded, other), dtype)
        if near is None or mask is None:
            return c.read(loaded, dtype)
        test = f"all({mask.text})"
        if size is not None:  # neighbours that do not count are read, too, where there are any
            test = f"{near} >= 0 && {near} <= {self._value(size).text} - {lanes}"
        whole = loaded._replace(text=self._loose(name, near))
        result = self._chosen(mask._replace(text=test), whole, loaded)
        return c.read(result if size is None else c.choose(mask, result, other), dtype)

    def _chosen(self, condition: Value, then: Value, other: Value) -> Value:
        """Return one of two values; the other is not computed."""
        self._count += 1
        name = f"e{self._count}"
        self._emit(f"{c.type_of(then)} {name};")
        self._emit(f"if ({condition.text}) {name} = {then.text};")
        self._emit(f"else {name} = {other.text};")
        self._names[name] = then._replace(text=name)
        return self._names[name]

    def _variable(self, name: str) -> Value:
        value = self._names[name]
        if name != self._index or value.lanes == 1:
            return value
        first = c.over(value._replace(lanes=1), value.lanes)
        return value._replace(text=f"{first.text} + {c.count(value.dtype, value.lanes)}")

    def _as_ints(self, op: str, operands: Sequence[Value]) -> Sequence[Value]:
        """Return ints instead of longs that were ints, if only ints are compared then.

        Mesa 22 takes such a long for an unsigned one where it is compared with a constant.
        """
        ints = [self._ints.get(operand.text, operand) for operand in operands]
        all_fit = op in c.COMPARED and all(value.dtype is dt.int32 for value in ints)
        return ints if all_fit else operands

    def _operation(self, each: Expression, operands: Sequence[Value]) -> Value:
        op, dtype = each.op, each.dtype
        if op == "constant":
            narrow = dtype is dt.int64 and abs(each.value or 0) <= dt.int32.max
            kept = self._narrow if narrow else dtype
            return Value(c.literal(each.value, kept), kept)
        if op in ("item", "member"):
            which = self._items if op == "item" else "get_local_id(0)"
            return Value(f"({c.TYPES[self._narrow]}){which}", self._narrow)
        if op == "variable":
            return self._variable(str(each.value))
        lanes = max(operand.lanes for operand in operands)
        if op in ("cast", "half"):
            (x,) = operands
            return c.cast(x, dtype) if op == "cast" else c.half(x, bool(each.value))
        if op == "bitcast":
            operand = self._converted(operands[0], each.operands[0].dtype)
            return Value(
                f"as_{c.TYPES[dtype]}{lanes if lanes > 1 else ''}({operand.text})", dtype, lanes
            )
        operands = self._as_ints(op, operands)
        own = operands[-1].dtype
        if any(operand.dtype is not own for operand in operands[op == "where" :]):
            own = dt.int64  # an index beside a number
            operands = [
                operand if op == "where" and not at else self._converted(operand, own)
                for at, operand in enumerate(operands)
            ]
        if op == "where":
            condition, *both = operands
            return c.choose(condition, *(c.over(value, lanes) for value in both))
        texts = [c.over(operand, lanes).text for operand in operands]
        if op in c.COMPARED and own is not dt.bool_:
            text = f"{texts[0]} {c.COMPARED[op]} {texts[1]}"
            if lanes > 1 and own.itemsize != 4:  # an int's
                text = f"convert_int{lanes}({text})"
            return Value(text, dt.bool_, lanes)
        fits = each.dtype is not own and lanes == 1  # an index
        return Value(c.apply(op, own, lanes, texts, fits=fits), own, lanes)
