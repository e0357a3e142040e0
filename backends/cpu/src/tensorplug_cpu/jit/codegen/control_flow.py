"""Writes functions in LLVM's intermediate representation: types, integers, variables, loops.

Variables live in the frame; LLVM's passes bring them into registers. So a loop is a ``with``
block, and what changes in it is a ``Variable``. Integers are of 64 bits, and offsets count
elements.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tensorplug_cpu.jit.codegen.compiler import compile_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


Value = Any  # of llvmlite, which has no types; or a Python integer where one of 64 bits is meant

_FLOATS: Final = {"float16": "HalfType", "float32": "FloatType", "float64": "DoubleType"}
_BITS: Final = {"half": 16, "float": 32, "double": 64}  # by LLVM's name


def bits_of(element: Any) -> int:
    """Return the size of a scalar type."""
    return _BITS.get(str(element)) or int(element.width)


def bytes_of(element: Any) -> int:
    """Return the size of a scalar type in memory."""
    return bits_of(element) // 8


class Variable:
    """A variable in the frame of a function."""

    __slots__ = ("_builder", "_pointer", "_type")

    def __init__(self, builder: Any, pointer: Value, type_: Any) -> None:
        self._builder, self._pointer, self._type = builder, pointer, type_

    def get(self) -> Value:
        """Return the value at this point of the program."""
        return self._builder.load(self._pointer, typ=self._type)

    def set(self, value: Value) -> None:
        """Change the value."""
        self._builder.store(value, self._pointer)


class ControlFlow:
    """A function that returns nothing, while it is written.

    Args:
        name: of the function and of its module.
        dtype: of the elements that ``load`` and ``store`` mean unless an argument says otherwise.
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
        self.itemsize = bytes_of(self.element)
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
        """Return a constant, everywhere in a vector; by default of 64 bits."""
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
        """Return a variable in the frame that holds ``value`` now."""
        value = self._whole(value)
        result = Variable(self.builder, self._frame.alloca(value.type), value.type)
        result.set(value)
        return result
