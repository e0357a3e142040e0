"""Accumulators of reductions: variables that a loop adds vectors to, and how they are folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.codegen.expressions import Renderer
from tensorplug_cpu.jit.codegen.instructions import element_type, vector_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType, Scalar, Shape
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.codegen.instructions import Code
    from tensorplug_cpu.jit.groups.evaluation import Evaluator


_FOLDS: Final = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_LOGICAL: Final = {"max": np.logical_or, "min": np.logical_and}
DEPTH: Final = 16
"""The number of vectors that are added one after the other; the sums of such blocks are added
with their rounding errors (``Accumulator.close_block``)."""


def accumulated(op: str, dtype: DType) -> DType:
    """Return the dtype in which numbers of ``dtype`` are accumulated.

    It is that of the kernels that run alone (``folds``): a sum or product of float32 whose parts
    do not fit into float32 may still be a float32.
    """
    sums = op in {"sum", "prod"} and dtype in dt.FLOATING
    return dt.float64 if sums else dtype.compute


def identity(op: str, dtype: DType) -> Scalar:
    """Return the number that changes no result of the reduction ``op``."""
    if op in {"sum", "prod"}:
        return 0 if op == "sum" else 1
    if dtype is dt.bool_:
        return op == "min"
    if dtype in dt.FLOATING:
        return float("-inf" if op == "max" else "inf")
    bits = 8 * dtype.itemsize
    signed = dtype in dt.SIGNED
    if op == "max":
        return -(1 << (bits - 1)) if signed else 0
    return (1 << (bits - signed)) - 1


def combine(to: Renderer, op: str, dtype: DType, a: str, b: str) -> str:
    """Write one step of the reduction ``op``."""
    if op == "max":
        return to.larger(dtype, a, b)
    if op == "min":
        return to.smaller(dtype, a, b)
    name = "add" if op == "sum" else "mul"
    return to.two(f"f{name}" if dtype in dt.FLOATING else name, dtype, a, b)


class Accumulator:
    """The accumulators of one reduction: ``count`` vectors, so that their additions overlap.

    ``dtype``: that of the expression.
    """

    def __init__(self, to: Evaluator, op: str, dtype: DType, count: int) -> None:
        self._code, self._wide = to.code, to.wide
        self._op, self._given, self.dtype = op, dtype, accumulated(op, dtype)
        self._type = self._wide.type(self.dtype)
        self._identity = self._wide.constant(identity(op, self.dtype), self.dtype)
        self.blocked = op == "sum" and dtype is dt.float64
        self._vectors = [self._code.allocate(self._type) for _ in range(count)]
        blocked = self._vectors if self.blocked else []
        self._sums = [self._code.allocate(self._type) for _ in blocked]
        self._errors = [self._code.allocate(self._type) for _ in blocked]

    def start(self) -> None:
        """Set everything to the identity."""
        for slot in (*self._vectors, *self._sums, *self._errors):
            self._code.do(f"store {self._type} {self._identity}, ptr {slot}")

    def add(self, number: int, value: str, mask: str | None = None) -> None:
        """Combine a vector, where ``mask`` holds, with that of this number."""
        code, wide = self._code, self._wide
        if self._given is not self.dtype:
            value = wide.cast(value, self._given, self.dtype)
        if mask is not None:
            value = wide.choose(mask, self.dtype, value, self._identity)
        slot = self._vectors[number]
        before = code.emit(f"load {self._type}, ptr {slot}")
        after = combine(wide, self._op, self.dtype, before, value)
        code.do(f"store {self._type} {after}, ptr {slot}")

    def close_block(self) -> None:
        """Add each vector to its sum, and what is lost to the sum's error.

        So the error of a sum does not grow with the number of blocks. Source: Knuth, The Art of
        Computer Programming, volume 2, section 4.2.2, theorem B.
        """
        if not self.blocked:
            return
        code = self._code
        for vector, total, error in zip(self._vectors, self._sums, self._errors, strict=True):
            a, b, lost = (
                code.emit(f"load {self._type}, ptr {slot}") for slot in (total, vector, error)
            )
            after = self._two("fadd", a, b)
            part = self._two("fsub", after, a)
            left = self._two("fsub", a, self._two("fsub", after, part))
            left = self._two("fadd", left, self._two("fsub", b, part))
            code.do(f"store {self._type} {after}, ptr {total}")
            code.do(f"store {self._type} {self._two('fadd', lost, left)}, ptr {error}")
            code.do(f"store {self._type} {self._identity}, ptr {vector}")

    def _two(self, instruction: str, a: str, b: str) -> str:
        return self._wide.two(instruction, self.dtype, a, b)

    def result(self) -> str:
        """Write the fold of all vectors and lanes; return a scalar of ``dtype``."""
        total = self._fold(self._sums if self.blocked else self._vectors)
        if not self.blocked:
            return total
        # Where a sum is infinite, its error is NaN, and means nothing.
        narrow = Renderer(self._code, 1)
        error = self._fold(self._errors)
        known = narrow.two("fcmp ord", self.dtype, error, error)
        zero = narrow.constant(0, self.dtype)
        return narrow.two("fadd", self.dtype, total, narrow.choose(known, self.dtype, error, zero))

    def _fold(self, slots: list[str]) -> str:
        values = [self._code.emit(f"load {self._type}, ptr {slot}") for slot in slots]
        while len(values) > 1:
            values = [
                combine(self._wide, self._op, self.dtype, *values[at : at + 2])
                for at in range(0, len(values), 2)
            ]
        return fold_lanes(self._code, self._op, self.dtype, values[0], self._wide.lanes)


def fold_lanes(code: Code, op: str, dtype: DType, value: str, lanes: int) -> str:
    """Combine the lanes of a vector in pairs; return a scalar."""
    while lanes > 1:
        type_ = vector_type(element_type(dtype), lanes)
        half = Renderer(code, lanes := lanes // 2)
        parts = []
        for start in (0, lanes):
            numbers = ", ".join(f"i32 {lane}" for lane in range(start, start + lanes))
            parts.append(
                code.emit(
                    f"shufflevector {type_} {value}, {type_} poison, <{lanes} x i32> <{numbers}>"
                )
            )
        if lanes == 1:
            one = vector_type(element_type(dtype), 1)
            parts = [code.emit(f"extractelement <1 x {one}> {part}, i64 0") for part in parts]
        value = combine(half, op, dtype, *parts)
    return value


def fold_partials(
    partials: Array, op: str, axes: Sequence[int], dtype: DType, shape: Shape
) -> Array:
    """Combine partial results along axes, in pairs, and round them to ``dtype``."""
    function = _FOLDS[op] if dtype is not dt.bool_ else _LOGICAL[op]
    result = partials
    with np.errstate(all="ignore"):
        for axis in axes:
            result = result.swapaxes(axis, 0)
            while len(result) > 1:
                half = len(result) // 2
                new = function(result[:half], result[half : 2 * half])
                if len(result) % 2:
                    function(new[:1], result[-1:], out=new[:1])
                result = new
            result = result.swapaxes(0, axis)
        return result.reshape(shape).astype(dtype.numpy, copy=False)
