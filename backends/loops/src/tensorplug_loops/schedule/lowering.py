"""Expressions of the operations that every compiler has (``statements.OPERATIONS``).

Narrow floats are computed in ``DType.compute``, and rounded where an expression ends, or casts to
their dtype: what one call computes is rounded once. Elementary functions round their results.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug.algorithms import elementary
from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.conversions import Converter
from tensorplug_loops.statements import rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.plugin import DType
    from tensorplug_loops.machine import Machine

_LEAVES: Final = {"parameter", "axis", "variable"}
_LOGICAL: Final = {"bitwise_and": "logical_and", "bitwise_or": "logical_or"}
_LEAST_BITS: Final = 8


class Lowering:
    """Lowers expressions for a machine.

    ``signs``: for names of variables that do not change, -1 or 1.
    """

    def __init__(self, machine: Machine, signs: Mapping[str, int] | None = None) -> None:
        self._functions = machine.functions
        self._signs = signs or {}
        self.converter = Converter(machine.narrow, long=machine.long)

    def lower(self, roots: Sequence[Expression]) -> list[Expression]:
        """Return expressions of equal values, with equal operations as one object."""
        roots = elementary.spell_out(roots, self._functions)
        lowered = rewritten(roots, self._lower)
        return ex.unify(
            [self._held(x, root.dtype) for root, x in zip(roots, lowered, strict=True)]
        )

    def _held(self, x: Expression, dtype: DType) -> Expression:
        """Return a number of ``dtype`` as it is held."""
        is_wide = x.dtype is not self.converter.held(dtype)
        return self.converter.cast(x, dtype.compute, dtype) if is_wide else x

    def _wide(self, x: Expression, dtype: DType) -> Expression:
        """Return a number of ``dtype`` as it is computed with."""
        is_wide = x.dtype is dtype.compute
        return x if is_wide else self.converter.cast(x, dtype, dtype.compute)

    def _lower(self, node: Expression, operands: tuple[Expression, ...]) -> Expression:
        """Return an operation; narrow floats are as they are held, or wide."""
        held, converter = self.converter.held, self.converter
        if node.op in _LEAVES:
            return _with(node, (), held(node.dtype))
        if node.op == "constant":
            assert node.value is not None
            return converter.constant(node.value, node.dtype)
        source = node.operands[-1].dtype  # the first of `where` is a bool
        if node.op == "cast":
            if source is node.dtype:
                return self._held(operands[0], source)
            is_wide = operands[0].dtype is not held(source)
            return converter.cast(operands[0], source.compute if is_wide else source, node.dtype)
        if node.op == "bitcast":
            return _bits(self._held(operands[0], source), held(node.dtype))
        if source.compute is source:
            return self._apply(node, operands)
        first = int(node.op == "where")  # whose condition is a bool
        condition, rest = operands[:first], operands[first:]
        if first and all(x.dtype is held(source) for x in rest):  # they are moved
            return self._apply(node, operands)
        made = self._apply(node, (*condition, *(self._wide(x, source) for x in rest)))
        return self._held(made, source) if node.op in ex.FUNCTIONS else made

    def _apply(self, node: Expression, operands: tuple[Expression, ...]) -> Expression:
        op, dtype = node.op, operands[-1].dtype
        if op in {"maximum", "minimum"}:
            return extreme(op == "maximum", *operands)
        if dtype in dt.BOOL and op.startswith("bitwise"):
            return _of_bools(op, operands)
        if dtype in dt.INTEGER:
            if op in {"floor_divide", "remainder"}:
                return self._divided(*operands)[op == "remainder"]
            if op.endswith("shift"):
                return _shifted(op, *operands)
            if op == "abs":
                (x,) = operands
                return ex.where(x < 0, -x, x) if dtype in dt.SIGNED else x
        elif op in _DIVISIONS:
            return _DIVISIONS[op](*operands)
        if op == "where":
            return ex.where(*operands, likely=ex.is_likely(node))
        return ex.apply(op, *operands)

    def _sign(self, x: Expression) -> int:
        """Return 1 for what is positive, 0 for what is not negative, -1 for others."""
        if x.op == "axis":
            return 0
        if x.op == "constant":
            return (x.value > 0) - (x.value < 0)  # type: ignore[operator]  # an integer
        if x.op == "variable":
            return self._signs.get(str(x.value), -1)
        if x.op in {"add", "multiply", "quotient", "rest"} and x.dtype is dt.int64:
            signs = [self._sign(operand) for operand in x.operands]
            if min(signs) >= 0:
                return max(signs) if x.op == "add" else 0
        return -1

    def _divided(self, a: Expression, b: Expression) -> tuple[Expression, Expression]:
        """Return quotient and remainder of integers, rounded down; both 0 if b is 0."""
        dtype = a.dtype
        if dtype is dt.int64 and self._sign(b) > 0:
            whole, rest = _two("quotient", a, b), _two("rest", a, b)
            if self._sign(a) >= 0:
                return whole, rest
            low = rest < 0
            return ex.where(low, whole - 1, whole), ex.where(low, rest + b, rest)
        by_zero = ex.apply("equal", b, 0)
        # The least number over -1 wraps. A divisor that depends on the dividend would be slow.
        turned = ex.apply("equal", b, -1) if dtype in dt.SIGNED else by_zero
        divisor = ex.where(ex.apply("logical_or", by_zero, turned), 1, b)
        whole = _two("quotient", a, divisor)
        rest = a - whole * divisor
        if dtype in dt.SIGNED:
            inexact = ex.apply("logical_not", ex.apply("equal", rest, 0))
            low = ex.apply("logical_and", inexact, ex.apply("bitwise_xor", rest, divisor) < 0)
            whole, rest = ex.where(low, whole - 1, whole), ex.where(low, rest + divisor, rest)
            whole = ex.where(turned, -a, whole)
        zero = ex.constant(0, dtype)
        return ex.where(by_zero, zero, whole), ex.where(by_zero, zero, rest)


def extreme(larger: bool, a: Expression, b: Expression) -> Expression:  # noqa: FBT001  # of two
    """Return the larger or the smaller of two numbers, NaN if one is."""
    if a.dtype is dt.bool_:
        return ex.apply("logical_or" if larger else "logical_and", a, b)
    chosen = ex.where(a < b if larger else b < a, b, a)
    if a.dtype not in dt.FLOATING:
        return chosen
    # One instruction of x86, which gives a if an operand is NaN; then NaN if b is. In a chain, b
    # is what is new: if a were asked twice, compilers would take twice as long for each more.
    return ex.where(ex.apply("equal", b, b), chosen, b)


def _with(
    node: Expression, operands: tuple[Expression, ...], dtype: DType | None = None
) -> Expression:
    return Expression(node.op, dtype or node.dtype, operands, node.value)


def _two(op: str, a: Expression, b: Expression) -> Expression:
    return Expression(op, a.dtype, (a, b))


def _bits(x: Expression, dtype: DType) -> Expression:
    """Read the bits of a number as another dtype; between integers, that is a cast."""
    if x.dtype in dt.INTEGER and dtype in dt.INTEGER:
        return ex.cast(x, dtype)
    return x if x.dtype is dtype else Expression("bitcast", dtype, (x,))


def _of_bools(op: str, operands: tuple[Expression, ...]) -> Expression:
    if op == "bitwise_not":
        return ex.apply("logical_not", *operands)
    if op == "bitwise_xor":
        return ex.apply("logical_not", ex.apply("equal", *operands))
    return ex.apply(_LOGICAL[op], *operands)


def _shifted(op: str, x: Expression, by: Expression) -> Expression:
    dtype = x.dtype
    most = _LEAST_BITS * dtype.itemsize - 1
    if by.op == "constant" and 0 <= by.value <= most:  # type: ignore[operator]  # an integer
        return ex.apply(op, x, by)
    fits = ex.apply("less_equal", by, most)
    if dtype in dt.SIGNED:
        fits = ex.apply("logical_and", fits, ex.apply("less_equal", ex.constant(0, dtype), by))
    shifted = ex.apply(op, x, ex.where(fits, by, most))
    if op == "bitwise_right_shift" and dtype in dt.SIGNED:
        return shifted
    return ex.where(fits, shifted, 0)


def _remainders(a: Expression, b: Expression) -> tuple[Expression, Expression, Expression]:
    """Return the remainder of floats with a's sign, that with b's, and whether they differ."""
    zero = ex.constant(0, a.dtype)
    rest = _two("rest", a, b)
    above, below = zero < rest, rest < zero
    negative = b < zero
    low = ex.where(negative, above, below)
    moved = ex.where(low, rest + b, rest)
    return rest, ex.where(ex.apply("equal", rest, 0), ex.apply("copysign", zero, b), moved), low


def _floor_divided(a: Expression, b: Expression) -> Expression:
    zero = ex.constant(0, a.dtype)
    exact = a / b
    rest, _, low = _remainders(a, b)
    quotient = (a - rest) / b
    quotient = ex.where(low, quotient - 1, quotient)
    # The quotient is nearly whole, but the division may have rounded it up or down.
    floor = ex.apply("floor", quotient)
    floor = ex.where(quotient - floor > 0.5, floor + 1, floor)  # a half
    floor = ex.where(ex.apply("equal", quotient, 0), ex.apply("copysign", zero, exact), floor)
    infinite = ex.apply("equal", ex.apply("abs", a), float("inf"))
    special = ex.apply("logical_or", infinite, ex.apply("equal", b, 0))
    return ex.where(special, exact, floor)


def _is_zero(x: Expression) -> bool:
    return x.op == "constant" and x.value == 0


def _divided(a: Expression, b: Expression) -> Expression:
    """Return the quotient of floats."""
    if not _is_zero(b):
        return ex.apply("divide", a, b)
    # The same number: Mesa takes what is divided by a constant 0 for undefined.
    factor = math.copysign(math.inf, b.value)  # type: ignore[arg-type]  # a float
    return ex.apply("multiply", a, factor)


_DIVISIONS: Final[dict[str, Callable[[Expression, Expression], Expression]]] = {
    "divide": _divided,
    "floor_divide": _floor_divided,
    "remainder": lambda a, b: _remainders(a, b)[1],
}
