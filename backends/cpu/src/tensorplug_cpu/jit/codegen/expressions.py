"""The operations of scalar expressions as LLVM's instructions, for scalars and for vectors.

Every operation is rounded by itself, as IEEE 754 has it; there are no branches. float16 is
computed in float32 and rounded after each operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.codegen import processor
from tensorplug_cpu.jit.codegen.conversions import Converter

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType, Expression

    Rule = Callable[["Renderer", DType, list[str]], str]


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


class Renderer(Converter):
    """Writes operations on vectors of ``lanes`` elements; one lane is a scalar."""

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
            return self.convert("bitcast", operands[0], source, expression.dtype)
        rule = _RULES[expression.op]
        wide = source.compute
        if wide is source or expression.op in _OF_BITS[source in dt.WIDENED]:
            return rule(self, source, operands)
        result = rule(self, wide, [self.cast(operand, source, wide) for operand in operands])
        if expression.dtype is not source:  # of a comparison
            return result
        return self.cast(result, wide, source)

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
