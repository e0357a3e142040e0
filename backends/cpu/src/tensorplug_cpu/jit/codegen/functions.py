"""Writes loops in LLVM's intermediate representation: the function, its variables, its vectors.

Variables live in the frame; LLVM's passes bring them into registers. So a loop is a ``with``
block, and what changes in it is a ``Variable``. Integers are of 64 bits, and offsets count
elements.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tensorplug_cpu.jit.codegen.compiler import compile_function
from tensorplug_cpu.jit.codegen.processor import vector_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


Value = Any  # of llvmlite, which has no types; or a Python integer where one of 64 bits is meant

_FLOATS: Final = {"float16": "HalfType", "float32": "FloatType", "float64": "DoubleType"}
_BITS: Final = {"half": 16, "float": 32, "double": 64}  # by LLVM's name


def lanes(itemsize: int, wanted: int | None = None) -> int:
    """Return the elements of a vector: at most a register, and not twice as many as ``wanted``."""
    most = vector_bytes() // itemsize
    if wanted is None:
        return most
    return min(most, max(16 // itemsize, 1 << (wanted - 1).bit_length()))


def _bits(element: Any) -> int:
    return _BITS.get(str(element)) or int(element.width)


def _bytes(element: Any) -> int:
    return _bits(element) // 8


class Variable:
    """A place in the frame of a function."""

    __slots__ = ("_builder", "_place", "_type")

    def __init__(self, builder: Any, place: Value, type_: Any) -> None:
        self._builder, self._place, self._type = builder, place, type_

    def get(self) -> Value:
        """Return the value at this point of the program."""
        return self._builder.load(self._place, typ=self._type)

    def set(self, value: Value) -> None:
        """Change the value."""
        self._builder.store(value, self._place)


class Function:
    """A function that returns nothing, while it is written.

    Args:
        name: of the function and of its module.
        dtype: of the elements that ``load`` and ``store`` mean unless told otherwise.
        pointers: the names of parameters, the first ones; they point to memory that is not
            written through another one, but for "counter", which threads share.
        integers: the names of those that follow.

    ``f["x"]`` is the parameter ``x``; ``f.builder`` is llvmlite's.

    """

    def __init__(
        self, name: str, dtype: str, pointers: Sequence[str], integers: Sequence[str]
    ) -> None:
        from llvmlite import ir  # an extra

        self._ir = ir
        self._module = ir.Module(name)
        self.integer = ir.IntType(64)
        self.element = self.scalar(dtype)
        self.itemsize = _bytes(self.element)
        parameters = [ir.PointerType()] * len(pointers) + [self.integer] * len(integers)
        self._function = ir.Function(
            self._module, ir.FunctionType(ir.VoidType(), parameters), name
        )
        self._arguments = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64] * len(integers)
        for of, parameter in zip(pointers, self._function.args, strict=False):
            if of != "counter":
                parameter.add_attribute("noalias")
        self._parameters = dict(zip((*pointers, *integers), self._function.args, strict=True))
        self._frame = ir.IRBuilder(self._function.append_basic_block("frame"))
        self._body = self._function.append_basic_block("body")
        self.builder = ir.IRBuilder(self._body)

    def __getitem__(self, name: str) -> Value:
        return self._parameters[name]

    def compiled(self) -> Callable[..., None]:
        """Return the function for ctypes: addresses and integers go in."""
        self.builder.ret_void()
        self._frame.branch(self._body)
        return compile_function(str(self._module), self._function.name, self._arguments)

    # Types and numbers

    def scalar(self, dtype: str) -> Any:
        """Return the type of one element; a bool is a byte, as in memory."""
        if dtype in _FLOATS:
            return getattr(self._ir, _FLOATS[dtype])()
        return self._ir.IntType(8 if dtype == "bool" else int(dtype.lstrip("uint")))

    def vector(self, count: int, element: Any = None) -> Any:
        """Return the type of ``count`` elements side by side; of one element, its own type."""
        element = self.element if element is None else element
        return element if count == 1 else self._ir.VectorType(element, count)

    def number(self, value: float, type_: Any = None) -> Value:
        """Return a constant, everywhere in a vector; of 64 bits unless a type is given."""
        type_ = self.integer if type_ is None else type_
        if isinstance(type_, self._ir.VectorType):
            return self._ir.Constant(type_, [value] * type_.count)
        return self._ir.Constant(type_, value)

    def _whole(self, value: Value) -> Value:
        return self.number(value) if isinstance(value, int) else value

    # Integers

    def add(self, *values: Value) -> Value:
        """Return the sum of integers."""
        total, *others = map(self._whole, values)
        for other in others:
            total = self.builder.add(total, other, flags=["nsw"])
        return total

    def subtract(self, a: Value, b: Value) -> Value:
        """Return the difference of integers."""
        return self.builder.sub(self._whole(a), self._whole(b), flags=["nsw"])

    def multiply(self, a: Value, b: Value) -> Value:
        """Return the product of integers."""
        return self.builder.mul(self._whole(a), self._whole(b), flags=["nsw"])

    def less(self, a: Value, b: Value) -> Value:
        """Return whether the integer ``a`` is less than ``b``."""
        return self.builder.icmp_signed("<", self._whole(a), self._whole(b))

    def least(self, a: Value, b: Value) -> Value:
        """Return the lesser of two integers."""
        a, b = self._whole(a), self._whole(b)
        return self.builder.select(self.less(a, b), a, b)

    def most(self, a: Value, b: Value) -> Value:
        """Return the greater of two integers."""
        a, b = self._whole(a), self._whole(b)
        return self.builder.select(self.less(a, b), b, a)

    # Steps

    @contextmanager
    def loop(self, start: Value, stop: Value, step: Value = 1) -> Iterator[Value]:
        """Run the block for each integer from ``start`` up to ``stop``, in steps."""
        counter = self.variable(self._whole(start))
        head, body, after = map(self._function.append_basic_block, ("head", "loop", "after"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        value = counter.get()
        self.builder.cbranch(self.less(value, stop), body, after)
        self.builder.position_at_end(body)
        yield value
        counter.set(self.add(value, step))
        self.builder.branch(head)
        self.builder.position_at_end(after)

    @contextmanager
    def repeat(self, condition: Callable[[], Value]) -> Iterator[None]:
        """Run the block as long as ``condition``, which is written before it, holds."""
        head, body, after = map(self._function.append_basic_block, ("head", "repeat", "after"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.builder.cbranch(condition(), body, after)
        self.builder.position_at_end(body)
        yield
        self.builder.branch(head)
        self.builder.position_at_end(after)

    @contextmanager
    def taken(self, count: Value, grain: Value = 1) -> Iterator[Value]:
        """Run the block for integers below ``count`` that this thread gets from the counter.

        They are ``grain`` apart. Threads that call the function with the same parameter
        "counter", which begins with 0, share them among themselves.
        """
        number, grain = self.variable(0), self._whole(grain)

        def more() -> Value:
            one = self.builder.atomic_rmw("add", self["counter"], grain, "monotonic")
            number.set(one)
            return self.less(one, count)

        with self.repeat(more):
            yield number.get()

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Run the block if ``condition`` holds."""
        body, after = map(self._function.append_basic_block, ("then", "done"))
        self.builder.cbranch(condition, body, after)
        self.builder.position_at_end(body)
        yield
        self.builder.branch(after)
        self.builder.position_at_end(after)

    def variable(self, value: Value) -> Variable:
        """Return a place in the frame that holds ``value`` now."""
        value = self._whole(value)
        result = Variable(self.builder, self._frame.alloca(value.type), value.type)
        result.set(value)
        return result

    # Memory and vectors

    def array(self, count: int, element: Any = None) -> Value:
        """Return the address of ``count`` elements in the frame, of any value."""
        element = self.element if element is None else element
        place = self._frame.alloca(element, count)
        place.type = self._ir.PointerType()  # llvmlite keeps the type of what it points to
        return place

    def place(self, pointer: Value, offset: Value, element: Any = None) -> Value:
        """Return the address of the element ``offset`` elements after ``pointer``."""
        element = self.element if element is None else element
        return self.builder.gep(
            pointer, [self._whole(offset)], inbounds=True, source_etype=element
        )

    def load(self, pointer: Value, offset: Value, count: int = 1, element: Any = None) -> Value:
        """Return ``count`` elements side by side."""
        element = self.element if element is None else element
        return self.builder.load(
            self.place(pointer, offset, element),
            typ=self.vector(count, element),
            align=_bytes(element),
        )

    def whole(self, pointer: Value, offset: Value) -> Value:
        """Return an integer of 64 bits from memory."""
        return self.load(pointer, offset, 1, self.integer)

    def prefetch(self, pointer: Value, offset: Value) -> None:
        """Ask for the cache line of an element that is read once, soon; it need not exist."""
        place = self.builder.gep(pointer, [self._whole(offset)], source_etype=self.element)
        number = self._ir.IntType(32)
        flags = [self._ir.Constant(number, flag) for flag in (0, 3, 1)]  # to read, of data
        self._call("llvm.prefetch.p0", self._ir.VoidType(), [place, *flags])

    def store(self, value: Value, pointer: Value, offset: Value) -> None:
        """Write an element, or a vector of them."""
        element = getattr(value.type, "element", value.type)
        place = self.place(pointer, offset, element)
        self.builder.store(value, place, align=_bytes(element))

    def mask(self, first: Value, stop: Value, count: int) -> Value:
        """Return which of ``count`` lanes, the first of which has number ``first``, are < stop."""
        room = self.spread(self.subtract(stop, first), count)
        if count == 1:
            return self.builder.icmp_signed("<", self.number(0), room)
        numbers = self._ir.Constant(self.vector(count, self.integer), list(range(count)))
        return self.builder.icmp_signed("<", numbers, room)

    def load_where(self, mask: Value, other: Value, pointer: Value, offset: Value) -> Value:
        """Return a vector from memory where ``mask`` holds, ``other`` elsewhere, unread there."""
        if not isinstance(other.type, self._ir.VectorType):
            result = self.variable(other)
            with self.when(mask):
                result.set(self.load(pointer, offset, 1, other.type))
            return result.get()
        element = other.type.element
        place = self.place(pointer, offset, element)
        return self._call(
            f"llvm.masked.load.{self._suffix(other.type)}.p0",
            other.type,
            [place, self._align(element), mask, other],
        )

    def store_where(self, mask: Value, value: Value, pointer: Value, offset: Value) -> None:
        """Write the lanes of ``value`` for which ``mask`` holds."""
        if not isinstance(value.type, self._ir.VectorType):
            with self.when(mask):
                self.store(value, pointer, offset)
            return
        element = value.type.element
        place = self.place(pointer, offset, element)
        self._call(
            f"llvm.masked.store.{self._suffix(value.type)}.p0",
            self._ir.VoidType(),
            [value, place, self._align(element), mask],
        )

    def gather(
        self, mask: Value, other: Value, pointer: Value, offset: Value, step: Value
    ) -> Value:
        """Return the elements ``step`` apart where ``mask`` holds, ``other`` elsewhere."""
        count = other.type.count
        numbers = self._ir.Constant(self.vector(count, self.integer), list(range(count)))
        offsets = self.builder.mul(numbers, self.spread(step, count))
        place = self.place(pointer, offset, other.type.element)
        return self.gather_at(mask, other, place, offsets)

    def gather_at(self, mask: Value, other: Value, pointer: Value, offsets: Value) -> Value:
        """Return the elements at ``offsets``, a vector, where ``mask`` holds."""
        element, count = other.type.element, other.type.count
        places = self.builder.gep(pointer, [offsets], source_etype=element)
        places.type = self._ir.VectorType(self._ir.PointerType(), count)
        return self._call(
            f"llvm.masked.gather.{self._suffix(other.type)}.v{count}p0",
            other.type,
            [places, self._align(element), mask, other],
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

    def shifted(self, x: Value, other: Value, places: int) -> Value:
        """Return a vector moved to higher lanes, or lower ones, and those of ``other`` before."""
        count = x.type.count
        numbers = self.vector(count, self._ir.IntType(32))
        order = [lane - places for lane in range(count)]
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
        return self._ir.Constant(self._ir.IntType(32), _bytes(element))

    def _suffix(self, type_: Any) -> str:
        element = getattr(type_, "element", type_)
        count = f"v{type_.count}" if isinstance(type_, self._ir.VectorType) else ""
        return f"{count}{'f' if str(element) in _BITS else 'i'}{_bits(element)}"

    def _call(
        self, name: str, result: Any, values: list[Value], fastmath: Sequence[str] = ()
    ) -> Value:
        """Call an intrinsic function of LLVM."""
        type_ = self._ir.FunctionType(result, [value.type for value in values])
        found = self._module.globals.get(name)
        function = self._ir.Function(self._module, type_, name) if found is None else found
        return self.builder.call(function, values, fastmath=fastmath)
