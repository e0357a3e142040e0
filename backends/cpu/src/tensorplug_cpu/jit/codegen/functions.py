"""Functions in LLVM's intermediate representation: what they read and write, and their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug_cpu.jit.codegen.control_flow import ControlFlow, bits_of, bytes_of
from tensorplug_cpu.jit.codegen.processor import vector_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_cpu.jit.codegen.control_flow import Value


def lanes(itemsize: int, columns: int | None = None) -> int:
    """Return the elements of a vector: at most a register, not twice as many as ``columns``."""
    most = vector_bytes() // itemsize
    if columns is None:
        return most
    return min(most, max(16 // itemsize, 1 << (columns - 1).bit_length()))


class Function(ControlFlow):
    """A function that reads and writes memory, and computes on vectors; see ``ControlFlow``."""

    def array(self, count: int, element: Any = None) -> Value:
        """Return the address of ``count`` elements in the frame, of any value."""
        element = self.element if element is None else element
        target = self._frame.alloca(element, count)
        target.type = self._ir.PointerType()  # llvmlite keeps the type of what it points to
        return target

    def pointer_to(self, pointer: Value, offset: Value, element: Any = None) -> Value:
        """Return the address of the element ``offset`` elements after ``pointer``."""
        element = self.element if element is None else element
        return self.builder.gep(
            pointer, [self._whole(offset)], inbounds=True, source_etype=element
        )

    def load(self, pointer: Value, offset: Value, count: int = 1, element: Any = None) -> Value:
        """Return ``count`` elements side by side."""
        element = self.element if element is None else element
        return self.builder.load(
            self.pointer_to(pointer, offset, element),
            typ=self.vector(count, element),
            align=bytes_of(element),
        )

    def in_vectors(
        self, start: Value, stop: Value, count: int, body: Callable[[Value, Value | None], None]
    ) -> None:
        """Write ``body(first, mask)`` for every ``count`` integers up to ``stop``, and the rest.

        ``mask``: which of the rest are less than ``stop``; None where all of them are.
        """
        done = self.variable(start)
        with self.loop(start, self.add(self.subtract(stop, count), 1), count) as first:
            body(first, None)
            done.set(self.add(first, count))
        rest = done.get()
        with self.when(self.less(rest, stop)):
            body(rest, self.mask(rest, stop, count))

    def whole(self, pointer: Value, offset: Value) -> Value:
        """Return an integer of 64 bits from memory."""
        return self.load(pointer, offset, 1, self.integer)

    def pointer_at(self, pointer: Value, offset: Value) -> Value:
        """Return an address from memory, where addresses and integers of 64 bits follow."""
        target = self.pointer_to(pointer, offset, self.integer)
        return self.builder.load(target, typ=self._ir.PointerType(), align=8)

    def prefetch(self, pointer: Value, offset: Value) -> None:
        """Ask for the cache line of an element that is read once, soon; it need not exist."""
        target = self.builder.gep(pointer, [self._whole(offset)], source_etype=self.element)
        number = self._ir.IntType(32)
        flags = [self._ir.Constant(number, flag) for flag in (0, 3, 1)]  # to read, of data
        self._call("llvm.prefetch.p0", self._ir.VoidType(), [target, *flags])

    def store(self, value: Value, pointer: Value, offset: Value) -> None:
        """Write an element, or a vector of them."""
        element = getattr(value.type, "element", value.type)
        target = self.pointer_to(pointer, offset, element)
        self.builder.store(value, target, align=bytes_of(element))

    def mask(self, first: Value, stop: Value, count: int) -> Value:
        """Return which of ``count`` lanes, the first of which has number ``first``, are < stop."""
        room = self.spread(self.subtract(stop, first), count)
        if count == 1:
            return self.builder.icmp_signed("<", self.number(0), room)
        numbers = self._ir.Constant(self.vector(count, self.integer), list(range(count)))
        return self.builder.icmp_signed("<", numbers, room)

    def load_where(self, mask: Value | None, other: Value, pointer: Value, offset: Value) -> Value:
        """Return a vector from memory where ``mask`` holds, ``other`` elsewhere, unread there.

        Without a mask, it holds everywhere.
        """
        if mask is None:
            element = getattr(other.type, "element", other.type)
            return self.load(pointer, offset, getattr(other.type, "count", 1), element)
        if not isinstance(other.type, self._ir.VectorType):
            result = self.variable(other)
            with self.when(mask):
                result.set(self.load(pointer, offset, 1, other.type))
            return result.get()
        element = other.type.element
        target = self.pointer_to(pointer, offset, element)
        return self._call(
            f"llvm.masked.load.{self._suffix(other.type)}.p0",
            other.type,
            [target, self._align(element), mask, other],
        )

    def store_where(self, mask: Value | None, value: Value, pointer: Value, offset: Value) -> None:
        """Write the lanes of ``value`` for which ``mask`` holds, all of them without a mask."""
        if mask is None:
            self.store(value, pointer, offset)
            return
        if not isinstance(value.type, self._ir.VectorType):
            with self.when(mask):
                self.store(value, pointer, offset)
            return
        element = value.type.element
        target = self.pointer_to(pointer, offset, element)
        self._call(
            f"llvm.masked.store.{self._suffix(value.type)}.p0",
            self._ir.VoidType(),
            [value, target, self._align(element), mask],
        )

    def gather(
        self, mask: Value, other: Value, pointer: Value, offset: Value, step: Value
    ) -> Value:
        """Return the elements ``step`` apart where ``mask`` holds, ``other`` elsewhere."""
        count = other.type.count
        numbers = self._ir.Constant(self.vector(count, self.integer), list(range(count)))
        offsets = self.builder.mul(numbers, self.spread(step, count))
        target = self.pointer_to(pointer, offset, other.type.element)
        return self.gather_at(mask, other, target, offsets)

    def gather_at(self, mask: Value, other: Value, pointer: Value, offsets: Value) -> Value:
        """Return the elements at ``offsets``, a vector, where ``mask`` holds."""
        element, count = other.type.element, other.type.count
        pointers = self.builder.gep(pointer, [offsets], source_etype=element)
        pointers.type = self._ir.VectorType(self._ir.PointerType(), count)
        return self._call(
            f"llvm.masked.gather.{self._suffix(other.type)}.v{count}p0",
            other.type,
            [pointers, self._align(element), mask, other],
        )

    def spread(self, value: Value, count: int) -> Value:
        """Return a vector with ``value`` in each of ``count`` lanes."""
        value = self._whole(value)
        if count == 1:
            return value
        type_ = self.vector(count, value.type)
        blank = self._ir.Constant(type_, self._ir.Undefined)
        lane = self._ir.IntType(32)
        one = self.builder.insert_element(blank, value, self._ir.Constant(lane, 0))
        return self.builder.shuffle_vector(
            one, blank, self._ir.Constant(self.vector(count, lane), [0] * count)
        )

    def part(self, x: Value, first: int, count: int) -> Value:
        """Return ``count`` neighbouring lanes of a vector; one is a scalar."""
        lane = self._ir.IntType(32)
        if count == 1:
            return self.builder.extract_element(x, self._ir.Constant(lane, first))
        return self.pick(x, range(first, first + count))

    def pick(self, x: Value, lanes: Sequence[int]) -> Value:
        """Return a vector of the lanes with these numbers."""
        numbers = self.vector(len(lanes), self._ir.IntType(32))
        blank = self._ir.Constant(x.type, self._ir.Undefined)
        return self.builder.shuffle_vector(x, blank, self._ir.Constant(numbers, list(lanes)))

    def shifted(self, x: Value, other: Value, distance: int) -> Value:
        """Return a vector moved to higher lanes, or lower ones, and those of ``other`` before."""
        count = x.type.count
        numbers = self.vector(count, self._ir.IntType(32))
        order = [lane - distance for lane in range(count)]
        order = [lane if 0 <= lane < count else count for lane in order]
        return self.builder.shuffle_vector(x, other, self._ir.Constant(numbers, order))

    def joined(self, a: Value, b: Value, *, alternating: bool = False) -> Value:
        """Return the lanes of two vectors: those of one after the other's, or in turn."""
        count = a.type.count
        order = list(range(2 * count))
        if alternating:
            order = [number // 2 + number % 2 * count for number in order]
        numbers = self.vector(2 * count, self._ir.IntType(32))
        return self.builder.shuffle_vector(a, b, self._ir.Constant(numbers, order))

    def lane_numbers(self, count: int) -> Value:
        """Return the vector 0, 1, 2, ... of integers."""
        return self._ir.Constant(self.vector(count, self.integer), list(range(count)))

    def intrinsic(
        self,
        name: str,
        *values: Value,
        fastmath: Sequence[str] = (),
        flag: bool | None = None,
    ) -> Value:
        """Return what LLVM's function ``name`` gives: of values of one type, which it has too.

        ``flag``: the last argument of some functions.
        """
        type_ = values[0].type
        flags = [] if flag is None else [self._ir.Constant(self._ir.IntType(1), int(flag))]
        function = f"llvm.{name}.{self._suffix(type_)}"
        return self._call(function, type_, [*values, *flags], fastmath)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """Return a * b + c, rounded once where the processor does that in one instruction."""
        return self._call(f"llvm.fmuladd.{self._suffix(a.type)}", a.type, [a, b, c])

    def _align(self, element: Any) -> Value:
        return self._ir.Constant(self._ir.IntType(32), bytes_of(element))

    def _suffix(self, type_: Any) -> str:
        element = getattr(type_, "element", type_)
        count = f"v{type_.count}" if isinstance(type_, self._ir.VectorType) else ""
        return f"{count}{'i' if hasattr(element, 'width') else 'f'}{bits_of(element)}"

    def _call(
        self, name: str, result: Any, values: list[Value], fastmath: Sequence[str] = ()
    ) -> Value:
        """Call an intrinsic function of LLVM."""
        type_ = self._ir.FunctionType(result, [value.type for value in values])
        declaration = self._module.globals.get(name)
        function = (
            self._ir.Function(self._module, type_, name) if declaration is None else declaration
        )
        return self.builder.call(function, values, fastmath=fastmath)
