"""The ends of fused kernels: a bias and an activation, of each sum as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.algorithms import channel_broadcast_shape
from tensorplug.plugin import Expression, TensorType, expressions
from tensorplug_loops.forms.loops import Loops, broadcast, widened

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_loops.forms.table import Operand


def _activated(
    name: str, x: Expression, alpha: float, slope: Expression | None = None
) -> Expression:
    """Return the activation of a sum; NaN stays NaN."""
    apply, where = expressions.apply, expressions.where
    if name == "relu":
        return apply("maximum", x, 0)
    if name == "relu6":
        return apply("minimum", apply("maximum", x, 0), 6)
    if name == "elu":
        return where(x < 0, expressions.function("expm1", x), x)
    if name == "sigmoid":
        small = expressions.function("exp", -apply("abs", x))
        return where(x < 0, small, 1) / (small + 1)
    return x if name == "linear" else where(x < 0, x * (alpha if slope is None else slope), x)


def prepare(
    loops: Loops,
    out: TensorType,
    bias: Operand | None,
    slopes: Operand | None,
    *,
    activation: str,
    leakyrelu_alpha: float,
    data_format: str | None = None,
) -> Callable[[Expression], Expression]:
    """Return a function of a sum; ``slopes``: of the negative side, for "prelu".

    The first axes of ``loops`` are those of the output. Operands are read before there are sums.
    """

    def read(one: Operand) -> Expression:
        own = one.reshaped(channel_broadcast_shape(one.shape, out.rank, data_format))
        return widened(loops.read(own, *broadcast(own.shape, loops.axes[: out.rank], out.shape)))

    added = None if bias is None else read(bias)
    slope = read(slopes) if activation == "prelu" and slopes is not None else None

    def finish(total: Expression) -> Expression:
        total = widened(total) if added is None else widened(total) + added
        return expressions.cast(_activated(activation, total, leakyrelu_alpha, slope), out.dtype)

    return finish
