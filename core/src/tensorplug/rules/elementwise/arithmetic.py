"""Gradients of elementwise arithmetic."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise import arithmetic, casting, choosing
from tensorplug.ops.elementwise import comparison as cmp
from tensorplug.ops.elementwise import unary as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.FLOOR, because="constant between jumps")
rules.stop(arithmetic.FLOOR_DIV, because="constant between jumps")
rules.stop(choosing.SELECT, "condition", because="truth values")
rules.formulas(ops.NEG, x=lambda dy: -dy)
# At 0 the last branch gives 0. It is x * 0, not 0, so that NaN stays NaN.
rules.formulas(
    ops.ABS, x=lambda dy, x: dy * choosing.where(x > 0, 1.0, choosing.where(x < 0, -1.0, x * 0.0))
)
rules.formulas(ops.EXP, x=lambda dy, out: dy * out)
rules.formulas(ops.LOG, x=lambda dy, x: dy / x)
rules.formulas(ops.SQRT, x=lambda dy, out: dy * 0.5 / out)
rules.formulas(ops.SIN, x=lambda dy, x: dy * ops.cos(x))
rules.formulas(ops.COS, x=lambda dy, x: -dy * ops.sin(x))
rules.formulas(ops.ATAN, x=lambda dy, x: dy / (1.0 + x * x))
rules.formulas(ops.ERF, x=lambda dy, x: dy * (2.0 / sqrt(pi)) * ops.exp(-x * x))
rules.formulas(ops.TANH, x=lambda dy, out: dy * (1.0 - out * out))
rules.formulas(ops.SQUARE, x=lambda dy, x: dy * 2.0 * x)
rules.formulas(arithmetic.ADD, a=lambda dy: dy, b=lambda dy: dy)
rules.formulas(arithmetic.ADD_N, xs=lambda dy, xs_type: [dy for _ in xs_type])
rules.formulas(arithmetic.SUB, a=lambda dy: dy, b=lambda dy: -dy)
rules.formulas(arithmetic.MULTIPLY, a=lambda dy, b: dy * b, b=lambda dy, a: dy * a)
rules.formulas(arithmetic.REAL_DIV, a=lambda dy, b: dy / b, b=lambda dy, b, out: -dy * out / b)
rules.formulas(
    arithmetic.DIV_NO_NAN,
    a=lambda dy, b: arithmetic.div_no_nan(dy, b),
    b=lambda dy, b, out: arithmetic.div_no_nan(-dy * out, b),
)
rules.formulas(arithmetic.MOD, a=lambda dy: dy, b=lambda dy, a, b: -dy * (a // b))


@rules.vjp(arithmetic.POW, "a")
def pow_wrt_a(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    # The derivative of a**0 is 0, but 0 * a**-1 is NaN for a = 0, and so are further derivatives
    # where a**-2 overflows. 0 / a is 0, and has the right mixed second derivative.
    constant = cmp.equal(b, 0)
    factor = dy * b
    sloped = factor * a ** choosing.where(constant, 1.0, b - 1.0)
    safe = choosing.where(cmp.logical_and(constant, cmp.not_equal(a, 0)), a, 1.0)
    return choosing.where(constant, factor / safe, sloped)


@rules.vjp(arithmetic.POW, "b")
def pow_wrt_b(dy: Tensor, a: Tensor, out: Tensor) -> Tensor:
    if a.dtype in dt.COMPLEX:
        zero = cmp.equal(a, 0)
        return dy * out * choosing.where(zero, 0.0, ops.log(choosing.where(zero, 1.0, a)))
    # a**b is real near b only for a > 0. Otherwise the gradient is 0, as in TensorFlow.
    return dy * out * choosing.where(a > 0, ops.log(choosing.where(a > 0, a, 1.0)), 0.0)


rules.formulas(
    arithmetic.MAXIMUM,
    a=lambda dy, a, b: _share(dy, a > b, cmp.equal(a, b)),
    b=lambda dy, a, b: _share(dy, b > a, cmp.equal(a, b)),
)
rules.formulas(
    arithmetic.MINIMUM,
    a=lambda dy, a, b: _share(dy, a < b, cmp.equal(a, b)),
    b=lambda dy, a, b: _share(dy, b < a, cmp.equal(a, b)),
)


@rules.vjp(arithmetic.SQUARED_DIFFERENCE)
def squared_difference(
    wanted: frozenset[str], dy: Tensor, a: Tensor, b: Tensor
) -> dict[str, Tensor]:
    slope = dy * 2.0 * (a - b)
    return {name: slope if name == "a" else -slope for name in wanted}


rules.formulas(casting.CAST, x=lambda dy, x_type: casting.astype(dy, x_type.dtype))
rules.formulas(
    choosing.SELECT,
    t=lambda dy, condition: choosing.where(condition, dy, 0.0),
    e=lambda dy, condition: choosing.where(condition, 0.0, dy),
)


def _share(dy: Tensor, wins: Tensor, ties: Tensor) -> Tensor:
    """Return dy where this operand wins, and half of it at a tie."""
    return choosing.where(wins, dy, choosing.where(ties, dy * 0.5, 0.0))


@rules.jvp(arithmetic.ADD_N, "xs")
def add_n_jvp(xs_dot: list[Tensor | None]) -> Tensor:
    tangents = [tangent for tangent in xs_dot if tangent is not None]
    return arithmetic.add_n(tangents) if len(tangents) > 1 else tangents[0]
