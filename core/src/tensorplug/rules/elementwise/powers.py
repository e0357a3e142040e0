"""Gradients of exponentials, logarithms, reciprocals and roots."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise import powers as ops
from tensorplug.ops.elementwise.arithmetic import div_no_nan
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, isinf, logical_and
from tensorplug.ops.elementwise.unary import exp
from tensorplug.ops.nn.activation import sigmoid

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(ops.EXPM1, x=lambda dy, x: dy * exp(x))
rules.formulas(ops.LOG1P, x=lambda dy, x: dy / (1.0 + x))
rules.formulas(ops.LOG2, x=lambda dy, x: dy * (1 / log(2)) / x)
# 1 / x may overflow
rules.formulas(ops.LOG10, x=lambda dy, x: dy * (1 / log(10)) / x)
rules.formulas(ops.RECIPROCAL, x=lambda dy, out: -dy * out * out)
rules.formulas(ops.RSQRT, x=lambda dy, x, out: dy * -0.5 * (out / x))
rules.formulas(
    ops.HYPOT,
    # 0 at the origin, as for Abs
    a=lambda dy, a, out: dy * div_no_nan(a, out),
    b=lambda dy, b, out: dy * div_no_nan(b, out),
)
rules.formulas(
    ops.LOG_ADD_EXP,
    a=lambda dy, a, b: dy * sigmoid(_subtract(a, b)),
    b=lambda dy, a, b: dy * sigmoid(_subtract(b, a)),
)


def _subtract(a: Tensor, b: Tensor) -> Tensor:
    """Return a - b, and 0 for equal infinities, so that they share dy."""
    return where(logical_and(equal(a, b), isinf(a)), 0.0, a - b)
