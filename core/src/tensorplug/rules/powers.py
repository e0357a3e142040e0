"""Gradients of exponentials, logarithms, reciprocals and roots."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import powers as ops
from tensorplug.ops.arithmetic import div_no_nan
from tensorplug.ops.choosing import where
from tensorplug.ops.comparison import equal, isinf, logical_and
from tensorplug.ops.elementwise import exp
from tensorplug.ops.nn.activation import sigmoid

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.EXPM1, "x")
def expm1(dy: Tensor, x: Tensor) -> Tensor:
    return dy * exp(x)


@rules.vjp(ops.LOG1P, "x")
def log1p(dy: Tensor, x: Tensor) -> Tensor:
    return dy / (1.0 + x)


@rules.vjp(ops.LOG2, "x")
def log2(dy: Tensor, x: Tensor) -> Tensor:
    return dy * (1 / log(2)) / x


@rules.vjp(ops.LOG10, "x")
def log10(dy: Tensor, x: Tensor) -> Tensor:
    return dy * (1 / log(10)) / x  # 1 / x may overflow


@rules.vjp(ops.RECIPROCAL, "x")
def reciprocal(dy: Tensor, out: Tensor) -> Tensor:
    return -dy * out * out


@rules.vjp(ops.RSQRT, "x")
def rsqrt(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    return dy * -0.5 * (out / x)


@rules.vjp(ops.HYPOT, "a")
def hypot_wrt_a(dy: Tensor, a: Tensor, out: Tensor) -> Tensor:
    return dy * div_no_nan(a, out)  # 0 at the origin, as for Abs


@rules.vjp(ops.HYPOT, "b")
def hypot_wrt_b(dy: Tensor, b: Tensor, out: Tensor) -> Tensor:
    return dy * div_no_nan(b, out)


@rules.vjp(ops.LOG_ADD_EXP, "a")
def log_add_exp_wrt_a(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return dy * sigmoid(_subtract(a, b))


@rules.vjp(ops.LOG_ADD_EXP, "b")
def log_add_exp_wrt_b(dy: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return dy * sigmoid(_subtract(b, a))


def _subtract(a: Tensor, b: Tensor) -> Tensor:
    """Return a - b, and 0 for equal infinities, so that they share dy."""
    return where(logical_and(equal(a, b), isinf(a)), 0.0, a - b)
