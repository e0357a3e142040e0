"""The operations of scalar expressions as LLVM's instructions, for scalars and for vectors.

Every operation is rounded by itself, as IEEE 754 has it; there are no branches. float16 is
computed in float32 and rounded after each operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.codegen import processor
from tensorplug_cpu.jit.codegen.instructions import element_type, literal, vector_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType, Expression, Scalar
    from tensorplug_cpu.jit.codegen.instructions import Code

    Rule = Callable[["Renderer", DType, list[str]], str]


_TWO_64: Final = 2.0**64
_BITS: Final = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_LOGICAL: Final = {"logical_and": "and", "logical_or": "or"}
_ARITHMETIC: Final = {
    "add": ("add", "fadd"),
    "subtract": ("sub", "fsub"),
    "multiply": ("mul", "fmul"),
}
_INTRINSICS: Final = {
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "round": "llvm.roundeven",
    "sqrt": "llvm.sqrt",
    "copysign": "llvm.copysign",
}
# What works on the bits of a narrow float: of LLVM's half, and of an integer in its place.
_OF_BITS: Final = (frozenset({"where", "negative", "copysign"}), frozenset({"where"}))
_COMPARISONS: Final = {  # for floats, unsigned and signed integers
    "equal": ("fcmp oeq", "icmp eq", "icmp eq"),
    "less": ("fcmp olt", "icmp ult", "icmp slt"),
    "less_equal": ("fcmp ole", "icmp ule", "icmp sle"),
}


class Renderer:
    """Writes operations on vectors of ``lanes`` elements; one lane is a scalar."""

    def __init__(self, code: Code, lanes: int) -> None:
        self.code = code
        self.lanes = lanes

    def type(self, dtype: DType) -> str:
        """Return the type of values of ``dtype``."""
        return vector_type(element_type(dtype), self.lanes)

    def constant(self, value: Scalar, dtype: DType) -> str:
        """Return a constant."""
        return literal(value, dtype, self.lanes)

    def render(self, expression: Expression, operands: list[str]) -> str:
        """Write one operation; return its result.

        Raises:
            KeyError: there is no rule for it.

        """
        if expression.op == "constant":
            assert expression.value is not None
            return self.constant(expression.value, expression.dtype)
        source = expression.operands[-1].dtype  # the first of `where` is a bool
        if expression.op == "cast":
            return self.cast(operands[0], source, expression.dtype)
        if expression.op == "bitcast":
            return self._convert("bitcast", operands[0], source, expression.dtype)
        rule = _RULES[expression.op]
        wide = source.compute
        if wide is source or expression.op in _OF_BITS[source in dt.WIDENED]:
            return rule(self, source, operands)
        result = rule(self, wide, [self.cast(operand, source, wide) for operand in operands])
        if expression.dtype is not source:  # of a comparison
            return result
        return self.cast(result, wide, source)

    # Instructions by the dtype of their operands.

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

    def _convert(self, instruction: str, x: str, source: DType, target: DType) -> str:
        if self.type(source) == self.type(target):
            return x
        return self.code.emit(f"{instruction} {self.type(source)} {x} to {self.type(target)}")

    def larger(self, dtype: DType, a: str, b: str) -> str:
        """Write the larger of two numbers; NaN if one is NaN."""
        return self._extreme(dtype, a, b, "fcmp ogt", "max")

    def smaller(self, dtype: DType, a: str, b: str) -> str:
        """Write the smaller of two numbers; NaN if one is NaN."""
        return self._extreme(dtype, a, b, "fcmp olt", "min")

    def _extreme(self, dtype: DType, a: str, b: str, comparison: str, name: str) -> str:
        if dtype is dt.bool_:
            return self.two("or" if name == "max" else "and", dtype, a, b)
        if dtype not in dt.FLOATING:
            sign = "s" if dtype in dt.SIGNED else "u"
            return self.intrinsic(f"llvm.{sign}{name}", dtype, [a, b])
        # One instruction of x86, which gives b if an operand is NaN; then NaN if a is.
        chosen = self.choose(self.two(comparison, dtype, a, b), dtype, a, b)
        return self.choose(self.two("fcmp uno", dtype, a, a), dtype, a, chosen)

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
            return self._resize(self._convert(instruction, x, source, wide), wide, target)
        if target.itemsize > source.itemsize or source is dt.bool_:
            extend = "sext" if source in dt.SIGNED else "zext"
            return self._convert(extend, x, source, target)
        return self._convert("trunc", x, source, target)

    def _resize(self, x: str, source: DType, target: DType) -> str:
        """Convert a float to another size, rounded once."""
        if target.itemsize >= source.itemsize:
            return self._convert("fpext", x, source, target)
        if source is dt.float64 and target is dt.float16:
            x, source = self._round_to_odd(x), dt.float32
        return self._convert("fptrunc", x, source, target)

    def _round_to_odd(self, x: str) -> str:
        """Convert float64 to float32 such that rounding once more is rounding once.

        An inexact result has an odd last digit. Source: Boldo and Melquiond, Emulation of a FMA
        and correctly rounded sums: proved algorithms using rounding to odd, 2008.
        """
        near = self._convert("fptrunc", x, dt.float64, dt.float32)
        back = self._convert("fpext", near, dt.float32, dt.float64)
        inexact = self.two("fcmp one", dt.float64, back, x)
        size, exact = (self.intrinsic("llvm.fabs", dt.float64, [each]) for each in (back, x))
        above = self.two("fcmp ogt", dt.float64, size, exact)
        bits = self._convert("bitcast", near, dt.float32, dt.uint32)
        step = self._convert("zext", above, dt.bool_, dt.uint32)
        odd = self._convert("zext", inexact, dt.bool_, dt.uint32)
        bits = self.two("or", dt.uint32, self.two("sub", dt.uint32, bits, step), odd)
        return self._convert("bitcast", bits, dt.uint32, dt.float32)

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
            self._convert("zext", x, source, dt.uint32),
            self.constant(16, dt.uint32),
        )
        return self._convert("bitcast", bits, dt.uint32, dt.float32)

    def _pack(self, x: str, target: DType) -> str:
        """Convert float32 to bfloat16, halves to even; NaN stays NaN."""
        bits = self._convert("bitcast", x, dt.float32, dt.uint32)
        half = self.constant(16, dt.uint32)
        upper = self.two("lshr", dt.uint32, bits, half)
        odd = self.two("and", dt.uint32, upper, self.constant(1, dt.uint32))
        added = self.two("add", dt.uint32, odd, self.constant(0x7FFF, dt.uint32))
        near = self.two("lshr", dt.uint32, self.two("add", dt.uint32, bits, added), half)
        quiet = self.two("or", dt.uint32, upper, self.constant(0x40, dt.uint32))
        undefined = self.two("fcmp uno", dt.float32, x, x)
        return self._convert(
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
        bits = self._convert("fptoui", size, source, wide)
        negated = self.two("sub", wide, self.constant(0, wide), bits)
        below = self.two("fcmp olt", source, rest, zero)
        bits = self.choose(below, wide, negated, bits)
        return self._convert("trunc", bits, wide, target)


def _arithmetic(instructions: tuple[str, str]) -> Rule:
    def rule(to: Renderer, dtype: DType, operands: list[str]) -> str:
        return to.two(instructions[dtype in dt.FLOATING], dtype, *operands)

    return rule


def _bitwise(instruction: str) -> Rule:
    return lambda to, dtype, operands: to.two(instruction, dtype, *operands)


def _named(intrinsic: str) -> Rule:
    return lambda to, dtype, operands: to.intrinsic(intrinsic, dtype, operands)


def _compared(instructions: tuple[str, str, str]) -> Rule:
    def rule(to: Renderer, dtype: DType, operands: list[str]) -> str:
        floating, unsigned, signed = instructions
        if dtype in dt.FLOATING:
            return to.two(floating, dtype, *operands)
        return to.two(signed if dtype in dt.SIGNED else unsigned, dtype, *operands)

    return rule


def _negative(to: Renderer, dtype: DType, operands: list[str]) -> str:
    if dtype in dt.FLOATING:
        return to.code.emit(f"fneg {to.type(dtype)} {operands[0]}")
    return to.two("sub", dtype, to.constant(0, dtype), operands[0])


def _abs(to: Renderer, dtype: DType, operands: list[str]) -> str:
    if dtype in dt.FLOATING:
        return to.intrinsic("llvm.fabs", dtype, operands)
    if dtype in dt.SIGNED:  # the least number stays as it is
        return to.intrinsic("llvm.abs", dtype, operands, "i1 false")
    return operands[0]


def _not(to: Renderer, dtype: DType, operands: list[str]) -> str:
    ones = to.constant(1 if dtype is dt.bool_ else -1, dtype)
    return to.two("xor", dtype, operands[0], ones)


def _fma(to: Renderer, dtype: DType, operands: list[str]) -> str:
    if processor.has_fma():
        return to.intrinsic("llvm.fma", dtype, operands)
    a, b, c = operands
    return to.two("fadd", dtype, to.two("fmul", dtype, a, b), c)


def _where(to: Renderer, dtype: DType, operands: list[str]) -> str:
    condition, t, e = operands
    return to.choose(condition, dtype, t, e)


def _shift(left: bool) -> Rule:  # noqa: FBT001  # one of two rules
    def rule(to: Renderer, dtype: DType, operands: list[str]) -> str:
        x, by = operands
        most = 8 * dtype.itemsize - 1
        fits = to.two("icmp ule", dtype, by, to.constant(most, dtype))  # a negative one does not
        by = to.choose(fits, dtype, by, to.constant(most, dtype))
        if not left and dtype in dt.SIGNED:
            return to.two("ashr", dtype, x, by)
        shifted = to.two("shl" if left else "lshr", dtype, x, by)
        return to.choose(fits, dtype, shifted, to.constant(0, dtype))

    return rule


def _divide_whole(to: Renderer, dtype: DType, a: str, b: str) -> tuple[str, str]:
    """Return quotient and remainder of integers, rounded down; both 0 if b is 0."""
    zero, one = to.constant(0, dtype), to.constant(1, dtype)
    by_zero = to.two("icmp eq", dtype, b, zero)
    unfit = by_zero
    signed = dtype in dt.SIGNED
    if signed:  # the least number over -1 wraps: it is itself
        least = to.constant(-(1 << (8 * dtype.itemsize - 1)), dtype)
        lowest = to.two("icmp eq", dtype, a, least)
        negated = to.two("icmp eq", dtype, b, to.constant(-1, dtype))
        unfit = to.two("or", dt.bool_, by_zero, to.two("and", dt.bool_, lowest, negated))
    divisor = to.choose(unfit, dtype, one, b)
    quotient = to.two("sdiv" if signed else "udiv", dtype, a, divisor)
    rest = to.two("sub", dtype, a, to.two("mul", dtype, quotient, divisor))
    if signed:
        inexact = to.two("icmp ne", dtype, rest, zero)
        apart = to.two("icmp slt", dtype, to.two("xor", dtype, rest, divisor), zero)
        low = to.two("and", dt.bool_, inexact, apart)
        quotient = to.choose(low, dtype, to.two("sub", dtype, quotient, one), quotient)
        rest = to.choose(low, dtype, to.two("add", dtype, rest, divisor), rest)
    return to.choose(by_zero, dtype, zero, quotient), to.choose(by_zero, dtype, zero, rest)


def _remainders(to: Renderer, dtype: DType, a: str, b: str) -> tuple[str, str, str]:
    """Return the remainder of floats with a's sign, that with b's, and whether they differ."""
    zero = to.constant(0, dtype)
    rest = to.two("frem", dtype, a, b)
    inexact = to.two("fcmp one", dtype, rest, zero)  # false if NaN
    below = [to.two("fcmp olt", dtype, each, zero) for each in (rest, b)]
    low = to.two("and", dt.bool_, inexact, to.two("xor", dt.bool_, *below))
    moved = to.choose(low, dtype, to.two("fadd", dtype, rest, b), rest)
    signed = to.intrinsic("llvm.copysign", dtype, [zero, b])
    none = to.two("fcmp oeq", dtype, rest, zero)
    return rest, to.choose(none, dtype, signed, moved), low


def _remainder(to: Renderer, dtype: DType, operands: list[str]) -> str:
    if dtype not in dt.FLOATING:
        return _divide_whole(to, dtype, *operands)[1]
    return _remainders(to, dtype, *operands)[1]


def _floor_divide(to: Renderer, dtype: DType, operands: list[str]) -> str:
    if dtype not in dt.FLOATING:
        return _divide_whole(to, dtype, *operands)[0]
    a, b = operands
    zero, one = to.constant(0, dtype), to.constant(1, dtype)
    exact = to.two("fdiv", dtype, a, b)
    rest, _, low = _remainders(to, dtype, a, b)
    quotient = to.two("fdiv", dtype, to.two("fsub", dtype, a, rest), b)
    quotient = to.choose(low, dtype, to.two("fsub", dtype, quotient, one), quotient)
    # The quotient is nearly whole, but the division may have rounded it up or down.
    floor = to.intrinsic("llvm.floor", dtype, [quotient])
    over = to.two("fsub", dtype, quotient, floor)
    more = to.two("fcmp ogt", dtype, over, to.constant(0.5, dtype))
    floor = to.choose(more, dtype, to.two("fadd", dtype, floor, one), floor)
    none = to.two("fcmp oeq", dtype, quotient, zero)
    nothing = to.intrinsic("llvm.copysign", dtype, [zero, exact])
    floor = to.choose(none, dtype, nothing, floor)
    infinite = to.two(
        "fcmp oeq",
        dtype,
        to.intrinsic("llvm.fabs", dtype, [a]),
        to.constant(float("inf"), dtype),
    )
    by_zero = to.two("fcmp oeq", dtype, b, zero)
    return to.choose(to.two("or", dt.bool_, infinite, by_zero), dtype, exact, floor)


_RULES: Final[dict[str, Rule]] = {
    **{name: _arithmetic(instructions) for name, instructions in _ARITHMETIC.items()},
    **{name: _bitwise(instruction) for name, instruction in (_BITS | _LOGICAL).items()},
    **{name: _named(intrinsic) for name, intrinsic in _INTRINSICS.items()},
    **{name: _compared(instructions) for name, instructions in _COMPARISONS.items()},
    "divide": _bitwise("fdiv"),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "negative": _negative,
    "abs": _abs,
    "maximum": lambda to, dtype, operands: to.larger(dtype, *operands),
    "minimum": lambda to, dtype, operands: to.smaller(dtype, *operands),
    "fma": _fma,
    "logical_not": _not,
    "bitwise_not": _not,
    "bitwise_left_shift": _shift(left=True),
    "bitwise_right_shift": _shift(left=False),
    "where": _where,
}
