"""Gradients of trigonometric and hyperbolic functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops import trigonometry as ops
from tensorplug.ops.arithmetic import div_no_nan
from tensorplug.ops.choosing import where
from tensorplug.ops.elementwise import abs as abs_
from tensorplug.ops.elementwise import sqrt
from tensorplug.ops.powers import hypot

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


def _one_minus_square(x: Tensor) -> Tensor:
    """Return ``1 - x**2``, by a product near 1, whose derivative would cancel near 0."""
    return where(abs_(x) < 0.5, 1.0 - x * x, (1.0 - x) * (1.0 + x))


@rules.vjp(ops.ACOS, "x")
def acos(dy: Tensor, x: Tensor) -> Tensor:
    return -dy / sqrt(_one_minus_square(x))


@rules.vjp(ops.ACOSH, "x")
def acosh(dy: Tensor, x: Tensor) -> Tensor:
    return dy / (sqrt(x - 1.0) * sqrt(x + 1.0))


@rules.vjp(ops.ASIN, "x")
def asin(dy: Tensor, x: Tensor) -> Tensor:
    return dy / sqrt(_one_minus_square(x))


@rules.vjp(ops.ASINH, "x")
def asinh(dy: Tensor, x: Tensor) -> Tensor:
    if x.dtype in dt.COMPLEX:
        return dy / sqrt(1.0 + x * x)
    return dy / hypot(x, 1.0)


@rules.vjp(ops.ATANH, "x")
def atanh(dy: Tensor, x: Tensor) -> Tensor:
    return dy / _one_minus_square(x)


@rules.vjp(ops.ATAN2)
def atan2(wanted: frozenset[str], dy: Tensor, a: Tensor, b: Tensor) -> dict[str, Tensor]:
    radius = hypot(a, b)
    across = {"a": (dy, b), "b": (-dy, a)}  # 0 at the origin, as for Hypot
    return {
        name: change * div_no_nan(div_no_nan(other, radius), radius)
        for name, (change, other) in across.items()
        if name in wanted
    }


@rules.vjp(ops.COSH, "x")
def cosh(dy: Tensor, x: Tensor) -> Tensor:
    return dy * ops.sinh(x)


@rules.vjp(ops.SINH, "x")
def sinh(dy: Tensor, x: Tensor) -> Tensor:
    return dy * ops.cosh(x)


@rules.vjp(ops.TAN, "x")
def tan(dy: Tensor, out: Tensor) -> Tensor:
    return dy * (1.0 + out * out)
