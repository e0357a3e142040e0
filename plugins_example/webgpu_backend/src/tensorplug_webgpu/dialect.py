"""The dialect WGSL: statements as the text of a compute shader.

Indices are ``i32``: WGSL has no integers of 64 bits, and the caller checks that they fit. A bool
in memory is a word, 0 or 1, since memory has no bools. Each array is a binding of its own, in the
order of the kernel's; behind them come the numbers, as vectors of four, which is the spacing that
uniforms have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug_loops.machine import Machine
from tensorplug_loops.statements import Assign, Let, arrays_read
from tensorplug_webgpu.functions import EXTREMES, PRODUCT
from tensorplug_webgpu.values import LANES, PARTS, TYPES, ZERO, Values, typed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        Update,
    )

ALONE: Final = 64  # work-items of a work-group whose items are independent
ITEMS: Final = "items"  # a number behind the kernel's own: how many items there are; then ``ZERO``
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
    strip: int = 1,
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
        strip=strip,
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


def has_strips(kernel: Kernel) -> bool:
    """Return whether work-items take several elements at once, and thus one item each."""
    return any(each.strip for each in kernel.arrays)


def _is_once(loop: Loop) -> bool:
    start, stop = loop.start, loop.stop
    return stop.op == "add" and stop.operands[0] is start and stop.operands[1].value == loop.step


class _Text(Values):
    """Writes one kernel.

    ``_read``: the arrays that are read. ``_arrays``: declarations of shared ones. ``_mask``: which
    lanes run.
    """

    def __init__(self, kernel: Kernel, space: str) -> None:
        super().__init__(kernel)
        self._space = space
        self._arrays: list[str] = []
        self._read = arrays_read(kernel.body)
        self._mask = ""

    def write(self) -> str:
        kernel = self._kernel
        together = kernel.group_size > 1
        grid = not together and not has_strips(kernel)
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
                *(_ITEMS if grid else _GROUP).format(first=first).splitlines(),
                *body,
                "}}\n" if grid else "}\n",
            ]
        )
        enable = "enable f16;\n" if _HALF.search(text) else ""
        return f"// {kernel.name}\n{enable}{text}"

    def _binding(self, at: int, array: Array) -> str:
        element = "u32" if array.dtype is dt.bool_ else TYPES[array.dtype]
        if array.name in self._bits:
            element = "u32"
        if array.name in self._atomic:
            element = f"atomic<{element}>"
        element = typed(element, LANES if array.name in self._strips else 1)
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
        elif TYPES[dtype] != "i32":
            value = f"bitcast<{TYPES[dtype]}>({value})"
        return f"  let {name} = {value};"

    # Statements ------------------------------------------------------------------------------

    def _block(self, body: Sequence[Statement], indent: str) -> Iterator[str]:
        for each in body:
            for line in getattr(self, f"_{type(each).__name__.lower()}")(each):
                yield indent + line

    def _let(self, each: Let) -> Iterator[str]:
        self._made[each.name] = each.value.op
        self._lanes[each.name] = self.lanes_of(each.value)
        yield f"let {each.name} = {self.value(each.value)};"

    def _declare(self, each: Declare) -> Iterator[str]:
        self._lanes[each.name] = each.lanes
        type_ = typed(TYPES[each.value.dtype], each.lanes)
        yield f"var {each.name}: {type_} = {self.spread(each.value, each.lanes)};"

    def _assign(self, each: Assign) -> Iterator[str]:
        lanes = self._lanes[each.name]
        value = self.spread(each.value, lanes)
        if lanes > 1 and self._mask:
            value = f"select({each.name}, {value}, {self._mask})"
        yield f"{each.name} = {value};"

    def _store(self, each: Store) -> Iterator[str]:
        assert not self._mask, "lanes that do not run would store"
        lanes, first = self.lanes_of(each.offset), self.first(each.offset)
        value, at = self.spread(each.value, lanes), self.value(each.offset)
        if each.array in self._words:
            words = typed("u32", lanes)
            value = f"select({words}(0u), {words}(1u), {value})"
        if first is not None and each.array in self._strips:
            yield f"{each.array}[{first} / {LANES}] = {value};"
        elif lanes > 1:
            yield f"{{ let stored = {value};"
            for part in PARTS:
                yield f"  {each.array}[{at}.{part}] = stored.{part};"
            yield "}"
        elif each.array in self._atomic:
            yield f"atomicStore(&{each.array}[{at}], {value});"
        else:
            yield f"{each.array}[{at}] = {value};"

    def _update(self, each: Update) -> Iterator[str]:
        at, value = self.value(each.offset), self.value(each.value)
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
        element = TYPES[each.dtype]
        self._arrays.append(f"var<{space}> {each.name}: array<{element}, {each.length}>;")
        yield from ()

    def _barrier(self, _: Barrier) -> Iterator[str]:
        yield "workgroupBarrier();"
        if any(each.written and each.name in self._read for each in self._kernel.arrays):
            yield "storageBarrier();"

    def _loop(self, each: Loop) -> Iterator[str]:
        index, start, stop = each.index, self.value(each.start), self.value(each.stop)
        outer = self._index
        if each.lanes > 1:
            assert each.whole
            assert each.lanes == LANES
            self._index, self._lanes[index] = index, LANES
        body = list(self._block(each.body, "  "))
        self._index = outer
        if _is_once(each):
            yield f"{{ let {index} = {start};"
            yield from body
            yield "}"
        elif not _is_short(each):
            yield f"for (var {index}: i32 = {start}; {index} < {stop}; {index} += {each.step}) {{"
            yield from body
            yield "}"
        else:
            yield from self._several(each, start, stop, body)

    def _several(self, each: Loop, start: str, stop: str, body: list[str]) -> Iterator[str]:
        """Write a loop's body several times in a loop, and a loop for the rest."""
        index, first = each.index, f"{each.index}_first"
        yield f"var {first}: i32 = {start};"
        for times in (_TIMES, 1):
            end = f"{stop} - {(times - 1) * each.step}" if times > 1 else stop
            yield f"for (; {first} < {end}; {first} += {times * each.step}) {{"
            for at in range(times):
                yield f"  {{ let {index} = {first} + {at * each.step};"
                yield from [f"  {line}" for line in body]
                yield "  }"
            yield "}"

    def _if(self, each: If) -> Iterator[str]:
        condition, before = self.value(each.condition), self._mask
        if self.lanes_of(each.condition) > 1:
            self._mask = f"({before} & {condition})" if before else condition
            condition = f"any({self._mask})"
        yield f"if ({condition}) {{"
        yield from self._block(each.then, "  ")
        yield "}"
        self._mask = before
