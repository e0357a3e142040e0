"""Compiles bodies of loops: where each value lies, and the native calls that a step makes.

Groups are the kernels that they are elsewhere, products are those of ``products``, views stay
views, and ``Concat`` and ``Pack`` copy. A body with any other kernel, or with a call that several
threads would share, is declined.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import (
    Group,
    TensorType,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.codegen import settings
from tensorplug_cpu.jit.codegen.compiler import CompilationError, compile_function
from tensorplug_cpu.jit.groups.kernels import kernels_of
from tensorplug_cpu.jit.groups.threads import SHARED_WORK
from tensorplug_cpu.jit.loops.addresses import is_pointer
from tensorplug_cpu.jit.stepping.copies import copy_arguments, copy_function
from tensorplug_cpu.jit.stepping.driver import Place, Tables
from tensorplug_cpu.jit.stepping.products import choose_tile, product_function
from tensorplug_cpu.jit.stepping.running import OPERANDS, ROOM, Loop, aligned
from tensorplug_cpu.jit.stepping.values import Value, dense

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.algorithms import loop_bodies
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.groups.steps import Step


_MOST_TERMS: Final = 1 << 12  # of a product, which are added one after the other
_MOST_PRODUCTS: Final = 1 << 20  # multiplications, more of which BLAS shares among threads
_PER_INSTRUCTION: Final = 8  # multiplications
_CALL: Final = 100  # instructions that a call takes beside its work
_VIEWS: Final = frozenset(
    {
        *(specs.IDENTITY, specs.RESHAPE, specs.EXPAND_DIMS, specs.TRANSPOSE, specs.BROADCAST_TO),
        *(specs.SLICE, specs.UNPACK, specs.SPLIT_V, specs.STRIDED_SLICE),
    }
)
_JOINED: Final = frozenset({specs.CONCAT, specs.PACK})


class _DeclinedError(Exception):
    """A body has something that does not run here."""


def compile_loop(body: loop_bodies.LoopBody) -> Callable[..., list[Array]] | None:
    """Return a function that runs a loop natively; None to decline it."""
    if settings.least_elements() is None:
        return None
    known = dt.REAL | dt.BOOL
    if not all(type_.dtype in known and type_.size for type_ in body.types):
        return None
    try:
        return _Compiler(body).loop()
    except (_DeclinedError, CompilationError):
        return None


class _Compiler:
    """Writes the tables of one loop.

    The carries have two places each, of which a step reads one and writes the other. A call
    writes a result to where the next step reads it, or to its row of the stacked results.
    """

    def __init__(self, body: loop_bodies.LoopBody) -> None:
        self._body = body
        self._tables = Tables()
        self._values: dict[int, Value] = {}
        self._dense: dict[int, Value] = {}  # copies of views, by slot
        self._arrangements: list[Value] = []  # operands that are copied before the first step
        self._room = 0
        self._work = 0
        self._carries: list[int | None] = []  # where each begins; None if it stays as it is

    def loop(self) -> Loop:
        """Return the function that runs the loop."""
        body, count = self._body, self._body.carries
        for slot in range(count):
            stays = body.results[slot] == slot
            size = aligned(body.types[slot].nbytes)
            self._carries.append(None if stays else self._take(2 * size))
        for slot in range(count + body.sequences + body.fixed + len(body.constants)):
            self._values[slot] = dense(body.types[slot], self._place_of_operand(slot))
        targets = self._targets()
        for number, call in enumerate(body.calls):
            if number == body.asked:
                self._ask()
            self._add(call, targets)
        if body.asked == len(body.calls):
            self._ask()
        self._finish(targets)
        outputs = [
            TensorType(body.types[slot].dtype, (body.length or 0, *body.types[slot].shape))
            for slot in self._stacked()
        ]
        return Loop(
            self._tables.finished(),
            body.constants,
            body.length,
            [body.types[slot] for slot in range(count)],
            self._carries,
            outputs,
            self._arrangements,
            self._room,
            self._work,
        )

    def _stacked(self) -> tuple[int, ...]:
        """Return the slots of the results that are stacked."""
        return self._body.results[self._body.carries :]

    def _stacks(self) -> int:
        """Return the region of the first stacked result."""
        body = self._body
        return OPERANDS + body.carries + body.sequences + body.fixed + len(body.constants)

    # Where values lie

    def _take(self, size: int) -> int:
        """Return the offset of new room, of ``size`` bytes."""
        offset = self._room
        self._room += aligned(size)
        return offset

    def _memory(self, type_: TensorType) -> Value:
        """Return new memory for a value that lasts for a step."""
        return dense(type_, Place(ROOM, self._take(type_.nbytes)))

    def _stepping(self, region: int, nbytes: int) -> Place:
        """Return the place of a step's slice of an array."""
        body = self._body
        if body.reverse:
            assert body.length is not None
            return Place(region, (body.length - 1) * nbytes, -nbytes)
        return Place(region, 0, nbytes)

    def _place_of_operand(self, slot: int) -> Place:
        body = self._body
        if slot < body.carries:
            begin = self._carries[slot]
            if begin is not None:
                return Place(ROOM, begin, 0, aligned(body.types[slot].nbytes))
        elif slot < body.carries + body.sequences:
            return self._stepping(OPERANDS + slot, body.types[slot].nbytes)
        return Place(OPERANDS + slot)

    def _targets(self) -> list[tuple[int, Place]]:
        """Return the slots of the results, each with the place where it belongs."""
        body = self._body
        stacks, targets = self._stacks(), []
        for number, slot in enumerate(body.results):
            if number >= body.carries:
                place = self._stepping(stacks + number - body.carries, body.types[slot].nbytes)
            else:
                begin = self._carries[number]
                if begin is None:
                    continue
                size = aligned(body.types[number].nbytes)
                place = Place(ROOM, begin + size, 0, -size)
            targets.append((slot, place))
        return targets

    def _new(self, slot: int, targets: Sequence[tuple[int, Place]]) -> Value:
        """Return the dense memory that a call fills."""
        type_ = self._body.types[slot]
        place = next((place for wanted, place in targets if wanted == slot), None)
        value = dense(type_, place or Place(ROOM, self._take(type_.nbytes)))
        self._values[slot] = value
        return value

    def _as_dense(self, slot: int) -> Value:
        """Return a value without gaps, copied if it has some."""
        value = self._values[slot]
        if value.is_dense:
            return value
        if slot not in self._dense:
            type_ = self._body.types[slot]
            copy = self._memory(type_)
            self._copy(value, copy)
            self._dense[slot] = copy
        return self._dense[slot]

    # Calls

    def _ask(self) -> None:
        if self._body.holds is not None:
            self._tables.ask(self._as_dense(self._body.holds).place)

    def _add(self, call: loop_bodies.BodyCall, targets: Sequence[tuple[int, Place]]) -> None:
        if isinstance(call.of, Group):
            inputs = [self._as_dense(slot) for slot in call.inputs]  # type: ignore[arg-type]  # no lists
            self._group(call.of, inputs, [self._new(slot, targets) for slot in call.outputs])
        elif call.of is specs.BATCH_MAT_MUL:
            self._product(call, targets)
        elif call.of is specs.GATHER_V2:
            self._take_one(call)
        elif call.of in _VIEWS:
            self._view(call)
        elif call.of in _JOINED:
            self._join(call, targets)
        else:
            raise _DeclinedError

    def _finish(self, targets: Sequence[tuple[int, Place]]) -> None:
        """Copy the results that do not lie where they belong."""
        for slot, place in targets:
            value = self._values[slot]
            if value.place != place or not value.is_dense:
                self._copy(value, dense(self._body.types[slot], place))

    def _run(
        self,
        function: Callable[..., None],
        block: Sequence[int],
        places: dict[int, Place],
        work: int,
        counter: int | None = None,
    ) -> None:
        if work >= SHARED_WORK:
            raise _DeclinedError
        self._work += work + _CALL
        self._tables.add(function, block, places, counter)

    def _copy(self, source: Value, target: Value) -> None:
        block = copy_arguments(source.shape, target.elements(), source.elements())
        if block is None:
            raise _DeclinedError
        places = {0: target.place, 1: source.place}
        self._run(copy_function(source.dtype.itemsize), block, places, prod(source.shape))

    def _view(self, call: loop_bodies.BodyCall) -> None:
        """Let the kernel make views of an array of no values, to see where they lie."""
        (slot,) = call.inputs
        assert isinstance(slot, int)
        assert call.run is not None
        value = self._as_dense(slot) if call.of is specs.RESHAPE else self._values[slot]
        array = value.array()
        made = call.run(array)
        for output, view in zip(
            call.outputs, made if isinstance(made, list | tuple) else [made], strict=True
        ):
            seen = value.seen(array, view)
            if seen is None or seen.shape != self._body.types[output].shape:
                raise _DeclinedError
            self._values[output] = seen

    def _take_one(self, call: loop_bodies.BodyCall) -> None:
        """Note the view of one slice, whose constant number is valid."""
        of, index = call.inputs
        first = self._body.carries + self._body.sequences + self._body.fixed
        assert isinstance(of, int)
        assert isinstance(index, int)
        axis, value = call.attributes["axis"], self._values[of]
        if not 0 <= index - first < len(self._body.constants) or self._body.types[index].rank:
            raise _DeclinedError
        number = int(self._body.constants[index - first])
        if not -value.shape[axis] <= number < value.shape[axis]:
            raise _DeclinedError  # the kernel says what is wrong
        array = value.array()
        view = value.seen(array, array[(*(slice(None),) * axis, number, ...)])
        assert view is not None
        self._values[call.outputs[0]] = view

    def _join(self, call: loop_bodies.BodyCall, targets: Sequence[tuple[int, Place]]) -> None:
        """Copy operands into parts of the result."""
        (slots,) = call.inputs
        assert isinstance(slots, tuple)
        target = self._new(call.outputs[0], targets)
        array, axis, end = target.array(), call.attributes["axis"], 0
        for slot in slots:
            source = self._values[slot]
            if call.of is specs.PACK:
                part: Any = np.moveaxis(array, axis, 0)[end, ...]
                end += 1
            else:
                start, end = end, end + source.shape[axis]
                part = np.moveaxis(np.moveaxis(array, axis, 0)[start:end], 0, axis)
            seen = target.seen(array, part)
            assert seen is not None
            self._copy(source, seen)

    def _product(self, call: loop_bodies.BodyCall, targets: Sequence[tuple[int, Place]]) -> None:
        a, b = (self._values[slot] for slot in call.inputs)  # type: ignore[index]  # no lists
        if a.dtype.name not in {"float32", "float64"}:
            raise _DeclinedError
        if call.attributes["transpose_a"]:
            a = a.turned()
        if call.attributes["transpose_b"]:
            b = b.turned()
        if b.strides[-1] != b.dtype.itemsize and b.shape[-1] > 1:
            b = self._arranged(b)
        result = self._new(call.outputs[0], targets)
        *before, rows, columns = result.shape
        terms, matrices = a.shape[-1], prod(before)
        if terms > _MOST_TERMS or matrices * rows * columns * terms > _MOST_PRODUCTS:
            raise _DeclinedError
        of_a, of_b = (each.apart(before) for each in (a, b))
        if of_a is None or of_b is None:
            raise _DeclinedError
        *_, row, inner = a.elements()
        *_, line, _ = b.elements()
        tile = choose_tile(rows, columns, a.dtype.itemsize)
        block = [0, 0, 0, matrices, rows, columns, terms]
        block += [of_a, row, inner, of_b, line, rows * columns]
        places = {0: a.place, 1: b.place, 2: result.place}
        work = matrices * rows * columns * terms // _PER_INSTRUCTION
        self._run(product_function(a.dtype.name, tile), block, places, work)

    def _arranged(self, value: Value) -> Value:
        """Return a dense copy of a value, made once if it is the same in each step."""
        type_ = TensorType(dt.of(value.dtype), value.shape)
        if value.place.moves or value.place.region < OPERANDS:
            copy = self._memory(type_)
            self._copy(value, copy)
            return copy
        if value not in self._arrangements:
            self._arrangements.append(value)
        number = self._arrangements.index(value)
        return dense(type_, Place(self._stacks() + len(self._stacked()) + number))

    def _group(self, group: Group, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        made = kernels_of(group)
        if made is None:
            raise _DeclinedError
        steps, results = made
        arrays = dict(enumerate(inputs)) | dict(zip(results, outputs, strict=True))
        for step in steps:
            self._kernel(step, arrays)

    def _kernel(self, step: Step, arrays: dict[int, Value]) -> None:
        """Add a kernel of a group; ``arrays``: those that the group has so far, by number."""
        text, slots, values, work = step.launch
        for number, memory in zip(step.writes, step.allocate, strict=True):
            if number not in arrays:
                arrays[number] = self._memory(TensorType(dt.of(memory.dtype), memory.shape))
        operands = [arrays[number] for number in (*step.reads, *step.writes)]
        total = values["total"]
        known = {"counter": 0, "grain": total, **values}
        block = [known.get(slot, 0) for slot in slots]
        positions = [at for at, slot in enumerate(slots) if is_pointer(slot)]
        places = {at: each.place for at, each in zip(positions, operands, strict=True)}
        counter = list(slots).index("counter")
        function = compile_function(text, "run", [ctypes.c_void_p])
        self._run(function, block, places, total * work, counter)
