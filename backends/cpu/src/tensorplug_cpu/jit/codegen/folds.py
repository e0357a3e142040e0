"""How loops over memory combine elements: vectors of them, in a dtype wide enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_cpu.jit.codegen.control_flow import Variable
    from tensorplug_cpu.jit.codegen.functions import Function

    Value = Any  # of llvmlite


_BYTES: Final = 64  # of a vector, whatever the processor's have, for the same order everywhere
_FACTORS: Final = 4  # lanes of a product: of so many float32, none is too large or too small
_NAMES: Final = {"sum": ("add", "fadd"), "prod": ("mul", "fmul")}  # of integers, of floats


def wide_dtype(source: str) -> str:
    """Return the dtype in which elements are combined."""
    return "float64" if source.startswith("float") else source


class Fold:
    """How values are combined, as instructions of the function ``f``.

    Args:
        f: the function.
        kind: ``"sum"`` or ``"prod"``.
        source: the dtype of the elements.
        result: the dtype of the results.

    """

    def __init__(self, f: Function, kind: str, source: str, result: str) -> None:
        self.f, self.kind = f, kind
        self.floating = source.startswith("float")
        self.wide = wide_dtype(source)
        self.compensated = kind == "sum" and source == "float64"
        self.element = f.scalar(self.wide)
        few = self.floating and kind == "prod"
        self.count = _FACTORS if few else _BYTES // np.dtype(self.wide).itemsize
        self.vector = f.vector(self.count, self.element)
        self.result = f.scalar(result)
        self.narrow = result == "float32" and self.wide == "float64"
        self.identity = f.number(self._identity(), self.vector)
        self.blank = f.number(self._identity(), f.vector(self.count))

    def _identity(self) -> float:
        return int(self.kind == "prod") or (-0.0 if self.floating else 0)

    def read(self, pointer: Value, offset: Value, mask: Value = None) -> Value:
        """Return a vector from memory, as accumulators have it."""
        return self.widened(self.f.load_where(mask, self.blank, pointer, offset))

    def write(self, value: Value, pointer: Value, offset: Value, mask: Value = None) -> None:
        """Write a vector to memory, in the dtype of the results."""
        self.f.store_where(mask, self.rounded(value), pointer, offset)

    def widened(self, x: Value) -> Value:
        """Return a vector in the dtype of the accumulators."""
        if x.type == self.vector:
            return x
        return self.f.builder.fpext(x, self.vector)

    def combine(self, a: Value, b: Value) -> Value:
        """Return the sum or product of two vectors or scalars."""
        return getattr(self.f.builder, _NAMES[self.kind][self.floating])(a, b)

    def together(self, values: Sequence[Value]) -> Value:
        """Return vectors combined as a tree; their number is a power of 2."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [self.combine(a, b) for a, b in pairs]
        return values[0]

    def add(self, total: Variable, error: Variable, value: Value) -> None:
        """Put a value into an accumulator; ``error`` collects what roundings lose."""
        build, old = self.f.builder, total.get()
        new = self.combine(old, value)
        total.set(new)
        if self.compensated:
            part = build.fsub(new, old)
            lost = build.fadd(build.fsub(old, build.fsub(new, part)), build.fsub(value, part))
            error.set(build.fadd(error.get(), lost))

    def corrected(self, total: Value, error: Value) -> Value:
        """Return a sum with its error, which is NaN where the sum is not finite."""
        if not self.compensated:
            return total
        build = self.f.builder
        known = build.fcmp_ordered("ord", error, error)
        return build.select(known, build.fadd(total, error), total)

    def rounded(self, total: Value) -> Value:
        """Return a vector or a scalar in the dtype of the results."""
        if not self.narrow:
            return total
        count = getattr(total.type, "count", 1)
        return self.f.builder.fptrunc(total, self.f.vector(count, self.result))

    def across(self, x: Value) -> Value:
        """Return the elements of a vector combined, as a tree."""
        count = self.count
        while count > 1:
            count //= 2
            x = self.combine(self.f.part(x, 0, count), self.f.part(x, count, count))
        return x
