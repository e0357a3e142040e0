"""Gradients of elementwise arithmetic."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops import (
    arithmetic,
    casting,
    choosing,
)
from tensorplug.ops import comparison as cmp
from tensorplug.ops import elementwise as ops

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.FLOOR, because="constant between jumps")
rules.stop(arithmetic.FLOOR_DIV, because="constant between jumps")
rules.stop(choosing.SELECT, "condition", because="truth values")


@rules.vjp(ops.NEG, "x")
def neg(dy: Tensor) -> Tensor:
    return -dy


@rules.vjp(ops.ABS, "x")
def abs_(dy: Tensor, x: Tensor) -> Tensor:
    # At 0 the last branch gives 0. It is x * 0, not 0, so that NaN stays NaN.
    return dy * choosing.where(x > 0, 1.0, choosing.where(x < 0, -1.0, x * 0.0))


@rules.vjp(ops.EXP, "x")
def exp(dy: Tensor, out: Tensor) -> Tensor:
    return dy * out


@rules.vjp(ops.LOG, "x")
def log(dy: Tensor, x: Tensor) -> Tensor:
    return dy / x


@rules.vjp(ops.SQRT, "x")
def sqrt_(dy: Tensor, out: Tensor) -> Tensor:
    return dy * 0.5 / out


@rules.vjp(ops.SIN, "x")
def sin(dy: Tensor, x: Tensor) -> Tensor:
    return dy * ops.cos(x)


@rules.vjp(ops.COS, "x")
def cos(dy: Tensor, x: Tensor) -> Tensor:
    return -dy * ops.sin(x)


@rules.vjp(ops.ATAN, "x")
def atan(dy: Tensor, x: Tensor) -> Tensor:
    return dy / (1.0 + x * x)


@rules.vjp(ops.ERF, "x")
def erf(dy: Tensor, x: Tensor) -> Tensor:
    return dy * (2.0 / sqrt(pi)) * ops.exp(-x * x)


@rules.vjp(ops.TANH, "x")
def tanh(dy: Tensor, out: Tensor) -> Tensor:
    return dy * (1.0 - out * out)


@rules.vjp(ops.SQUARE, "x")
def square(dy: Tensor, x: Tensor) -> Tensor:
    return dy * 2.0 * x


@rules.vjp(arithmetic.ADD, "a")
def add_wrt_a(dy: Tensor) -> Tensor:
    return dy


@rules.vjp(arithmetic.ADD, "b")
def add_wrt_b(dy: Tensor) -> Tensor:
    return dy


@rules.vjp(arithmetic.ADD_N, "xs")
def add_n(dy: Tensor, xs_type: list[TensorType]) -> list[Tensor]:
    return [dy for _ in xs_type]


@rules.vjp(arithmetic.SUB, "a")
def sub_wrt_a(dy: Tensor) -> Tensor:
    return dy


@rules.vjp(arithmetic.SUB, "b")
def sub_wrt_b(dy: Tensor) -> Tensor:
    return -dy


@rules.vjp(arithmetic.MULTIPLY, "a")
def multiply_wrt_a(dy: Tensor, b: Tensor) -> Tensor:
    return dy * b


@rules.vjp(arithmetic.MULTIPLY, "b")
def multiply_wrt_b(dy: Tensor, a: Tensor) -> Tensor:
    return dy * a


@rules.vjp(arithmetic.REAL_DIV, "a")
def real_div_wrt_a(dy: Tensor, b: Tensor) -> Tensor:
    return dy / b


@rules.vjp(arithmetic.REAL_DIV, "b")
def real_div_wrt_b(dy: Tensor, b: Tensor, out: Tensor) -> Tensor:
    return -dy * out / b


@rules.vjp(arithmetic.DIV_NO_NAN, "a")
def div_no_nan_wrt_a(dy: Tensor, b: Tensor) -> Tensor:
    return arithmetic.div_no_nan(dy, b)


@rules.vjp(arithmetic.DIV_NO_NAN, "b")
def div_no_nan_wrt_b(dy: Tensor, b: Tensor, out: Tensor) -> Tensor:
    return arithmetic.div_no_nan(-dy * out, b)


@rules.vjp(arithmetic.MOD, "a")
def mod_wrt_a(dy: Tensor) -> Tensor:
    return dy


@rules.vjp(arithmetic.MOD, "b")
def mod_wrt_b(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return -dy * (a // b)


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


@rules.vjp(arithmetic.MAXIMUM, "a")
def maximum_wrt_a(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return _share(dy, a > b, cmp.equal(a, b))


@rules.vjp(arithmetic.MAXIMUM, "b")
def maximum_wrt_b(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return _share(dy, b > a, cmp.equal(a, b))


@rules.vjp(arithmetic.MINIMUM, "a")
def minimum_wrt_a(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return _share(dy, a < b, cmp.equal(a, b))


@rules.vjp(arithmetic.MINIMUM, "b")
def minimum_wrt_b(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return _share(dy, b < a, cmp.equal(a, b))


@rules.vjp(arithmetic.SQUARED_DIFFERENCE)
def squared_difference(
    wanted: frozenset[str], dy: Tensor, a: Tensor, b: Tensor
) -> dict[str, Tensor]:
    slope = dy * 2.0 * (a - b)
    return {name: slope if name == "a" else -slope for name in wanted}


@rules.vjp(casting.CAST, "x")
def cast(dy: Tensor, x_type: TensorType) -> Tensor:
    return casting.astype(dy, x_type.dtype)


@rules.vjp(choosing.SELECT, "t")
def select_wrt_t(dy: Tensor, condition: Tensor) -> Tensor:
    return choosing.where(condition, dy, 0.0)


@rules.vjp(choosing.SELECT, "e")
def select_wrt_e(dy: Tensor, condition: Tensor) -> Tensor:
    return choosing.where(condition, 0.0, dy)


def _share(dy: Tensor, wins: Tensor, ties: Tensor) -> Tensor:
    """Return dy where this operand wins, and half of it at a tie."""
    return choosing.where(wins, dy, choosing.where(ties, dy * 0.5, 0.0))


@rules.jvp(arithmetic.ADD_N, "xs")
def add_n_jvp(xs_dot: list[Tensor | None]) -> Tensor:
    given = [tangent for tangent in xs_dot if tangent is not None]
    return arithmetic.add_n(given) if len(given) > 1 else given[0]
