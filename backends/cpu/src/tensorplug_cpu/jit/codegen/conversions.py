"""Instructions by the dtype of their operands, and conversions between dtypes, as LLVM's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.codegen.instructions import element_type, literal, vector_type

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Scalar
    from tensorplug_cpu.jit.codegen.instructions import Code


_TWO_64: Final = 2.0**64


class Converter:
    """Writes instructions on vectors of ``lanes`` elements; one lane is a scalar."""

    def __init__(self, code: Code, lanes: int) -> None:
        self.code = code
        self.lanes = lanes

    def type(self, dtype: DType) -> str:
        """Return the type of values of ``dtype``."""
        return vector_type(element_type(dtype), self.lanes)

    def constant(self, value: Scalar, dtype: DType) -> str:
        """Return a constant."""
        return literal(value, dtype, self.lanes)

    def two(self, instruction: str, dtype: DType, a: str, b: str) -> str:
        """Write an instruction of two operands."""
        return self.code.emit(f"{instruction} {self.type(dtype)} {a}, {b}")

    def choose(self, condition: str, dtype: DType, t: str, e: str) -> str:
        """Write a selection."""
        type_ = self.type(dtype)
        return self.code.emit(
            f"select {self.type(dt.bool_)} {condition}, {type_} {t}, {type_} {e}"
        )

    def intrinsic(self, name: str, dtype: DType, operands: list[str], more: str = "") -> str:
        """Write a call of an intrinsic."""
        return self.code.call(name, self.type(dtype), operands, more)

    def convert(self, instruction: str, x: str, source: DType, target: DType) -> str:
        """Write an instruction that converts; none between dtypes of one LLVM type."""
        if self.type(source) == self.type(target):
            return x
        return self.code.emit(f"{instruction} {self.type(source)} {x} to {self.type(target)}")

    def cast(self, x: str, source: DType, target: DType) -> str:
        """Convert by the rules of ``tensorplug_cpu.numerics.casting``."""
        if source is target:
            return x
        if source in dt.WIDENED:
            return self.cast(self._unpack(x, source), dt.float32, target)
        if target in dt.WIDENED:
            return self._narrow(x, source, target)
        if target is dt.bool_:
            comparison = "fcmp une" if source in dt.FLOATING else "icmp ne"
            return self.two(comparison, source, x, self.constant(0, source))
        if source in dt.FLOATING:
            return (
                self._resize(x, source, target)
                if target in dt.FLOATING
                else self._whole(x, source, target)
            )
        if target in dt.FLOATING:  # an integer goes to float16 by way of float32, as in NumPy
            wide = target.compute
            instruction = "sitofp" if source in dt.SIGNED else "uitofp"
            return self._resize(self.convert(instruction, x, source, wide), wide, target)
        if target.itemsize > source.itemsize or source is dt.bool_:
            extend = "sext" if source in dt.SIGNED else "zext"
            return self.convert(extend, x, source, target)
        return self.convert("trunc", x, source, target)

    def _resize(self, x: str, source: DType, target: DType) -> str:
        """Convert a float to another size, rounded once."""
        if target.itemsize >= source.itemsize:
            return self.convert("fpext", x, source, target)
        if source is dt.float64 and target is dt.float16:
            x, source = self._round_to_odd(x), dt.float32
        return self.convert("fptrunc", x, source, target)

    def _round_to_odd(self, x: str) -> str:
        """Convert float64 to float32 such that rounding once more is rounding once.

        An inexact result has an odd last digit. Source: Boldo and Melquiond, Emulation of a FMA
        and correctly rounded sums: proved algorithms using rounding to odd, 2008.
        """
        near = self.convert("fptrunc", x, dt.float64, dt.float32)
        back = self.convert("fpext", near, dt.float32, dt.float64)
        inexact = self.two("fcmp one", dt.float64, back, x)
        size, exact = (self.intrinsic("llvm.fabs", dt.float64, [number]) for number in (back, x))
        above = self.two("fcmp ogt", dt.float64, size, exact)
        bits = self.convert("bitcast", near, dt.float32, dt.uint32)
        step = self.convert("zext", above, dt.bool_, dt.uint32)
        odd = self.convert("zext", inexact, dt.bool_, dt.uint32)
        bits = self.two("or", dt.uint32, self.two("sub", dt.uint32, bits, step), odd)
        return self.convert("bitcast", bits, dt.uint32, dt.float32)

    def _narrow(self, x: str, source: DType, target: DType) -> str:
        """Convert to bfloat16, rounded once."""
        if source not in dt.FLOATING:
            if source.itemsize == 8:
                x = self._sticky(x, source)
            wide = dt.float64 if source.itemsize > 2 else dt.float32
            x, source = self.cast(x, source, wide), wide
        if source is dt.float64:
            x, source = self._round_to_odd(x), dt.float32
        return self._pack(self.cast(x, source, dt.float32), target)

    def _unpack(self, x: str, source: DType) -> str:
        """Convert bfloat16 to float32, whose upper half it is."""
        bits = self.two(
            "shl",
            dt.uint32,
            self.convert("zext", x, source, dt.uint32),
            self.constant(16, dt.uint32),
        )
        return self.convert("bitcast", bits, dt.uint32, dt.float32)

    def _pack(self, x: str, target: DType) -> str:
        """Convert float32 to bfloat16, halves to even; NaN stays NaN."""
        bits = self.convert("bitcast", x, dt.float32, dt.uint32)
        half = self.constant(16, dt.uint32)
        upper = self.two("lshr", dt.uint32, bits, half)
        odd = self.two("and", dt.uint32, upper, self.constant(1, dt.uint32))
        added = self.two("add", dt.uint32, odd, self.constant(0x7FFF, dt.uint32))
        near = self.two("lshr", dt.uint32, self.two("add", dt.uint32, bits, added), half)
        quiet = self.two("or", dt.uint32, upper, self.constant(0x40, dt.uint32))
        undefined = self.two("fcmp uno", dt.float32, x, x)
        return self.convert(
            "trunc", self.choose(undefined, dt.uint32, quiet, near), dt.uint32, target
        )

    def _sticky(self, x: str, dtype: DType) -> str:
        """Make the last 12 bits of a large integer one bit, for float64, which keeps it then."""
        low = self.two("and", dtype, x, self.constant(0xFFF, dtype))
        some = self.two("icmp ne", dtype, low, self.constant(0, dtype))
        bit = self.choose(some, dtype, self.constant(0x800, dtype), self.constant(0, dtype))
        marked = self.two("or", dtype, self.two("sub", dtype, x, low), bit)
        size = self.intrinsic("llvm.fabs", dt.float64, [self.cast(x, dtype, dt.float64)])
        exact = self.two("fcmp olt", dt.float64, size, self.constant(2.0**53, dt.float64))
        return self.choose(exact, dtype, x, marked)

    def _whole(self, x: str, source: DType, target: DType) -> str:
        """Convert a float to an integer: truncated, wrapped; NaN and infinities give 0.

        Dividing by a power of 2 is exact, and so is the remainder.
        """
        x, source = self.cast(x, source, source.compute), source.compute
        wide = dt.uint64 if target.itemsize == 8 else dt.uint32
        modulus = _TWO_64 if wide is dt.uint64 else 2.0**32
        whole = self.intrinsic("llvm.trunc", source, [x])
        share = self.two("fmul", source, whole, self.constant(1 / modulus, source))
        times = self.intrinsic("llvm.trunc", source, [share])
        multiple = self.two("fmul", source, times, self.constant(modulus, source))
        rest = self.two("fsub", source, whole, multiple)
        zero = self.constant(0, source)
        finite = self.two("fcmp ord", source, rest, zero)
        rest = self.choose(finite, source, rest, zero)
        size = self.intrinsic("llvm.fabs", source, [rest])
        bits = self.convert("fptoui", size, source, wide)
        negated = self.two("sub", wide, self.constant(0, wide), bits)
        below = self.two("fcmp olt", source, rest, zero)
        bits = self.choose(below, wide, negated, bits)
        return self.convert("trunc", bits, wide, target)
