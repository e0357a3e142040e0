"""Gradients of trigonometric and hyperbolic functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise import trigonometry as ops
from tensorplug.ops.elementwise.arithmetic import div_no_nan
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.powers import hypot
from tensorplug.ops.elementwise.unary import abs as abs_
from tensorplug.ops.elementwise.unary import sqrt

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


def _one_minus_square(x: Tensor) -> Tensor:
    """Return ``1 - x**2``, by a product near 1, whose derivative would cancel near 0."""
    return where(abs_(x) < 0.5, 1.0 - x * x, (1.0 - x) * (1.0 + x))


rules.formulas(ops.ACOS, x=lambda dy, x: -dy / sqrt(_one_minus_square(x)))
rules.formulas(ops.ACOSH, x=lambda dy, x: dy / (sqrt(x - 1.0) * sqrt(x + 1.0)))
rules.formulas(ops.ASIN, x=lambda dy, x: dy / sqrt(_one_minus_square(x)))


@rules.vjp(ops.ASINH, "x")
def asinh(dy: Tensor, x: Tensor) -> Tensor:
    if x.dtype in dt.COMPLEX:
        return dy / sqrt(1.0 + x * x)
    return dy / hypot(x, 1.0)


rules.formulas(ops.ATANH, x=lambda dy, x: dy / _one_minus_square(x))


@rules.vjp(ops.ATAN2)
def atan2(wanted: frozenset[str], dy: Tensor, a: Tensor, b: Tensor) -> dict[str, Tensor]:
    radius = hypot(a, b)
    across = {"a": (dy, b), "b": (-dy, a)}  # 0 at the origin, as for Hypot
    return {
        name: change * div_no_nan(div_no_nan(other, radius), radius)
        for name, (change, other) in across.items()
        if name in wanted
    }


rules.formulas(ops.COSH, x=lambda dy, x: dy * ops.sinh(x))
rules.formulas(ops.SINH, x=lambda dy, x: dy * ops.cosh(x))
rules.formulas(ops.TAN, x=lambda dy, out: dy * (1.0 + out * out))
