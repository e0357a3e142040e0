"""Convolutions with a bias and an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import channel_broadcast_shape
from tensorplug.plugin import Expression, KernelSpec, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, broadcast
from tensorplug_loops.forms.nn import convolution, depthwise
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Callable

forms = FormTable()


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


def _register(spec: KernelSpec, convolve: Callable[..., Form]) -> None:
    @forms.form(spec)
    def fused(
        x: Operand,
        filter: Operand,
        bias: Operand | None,
        prelu_activation_weights: Operand | None,
        *,
        attributes: dict[str, Any],
        data_format: str,
        leakyrelu_alpha: float,
        activation: str,
        out: TensorType,
    ) -> Form:
        def prepare(loops: Loops) -> Callable[[Expression], Expression]:
            def read(one: Operand) -> Expression:
                own = one.reshaped(channel_broadcast_shape(one.shape, out.rank, data_format))
                return loops.read(own, *broadcast(own.shape, loops.axes[: out.rank], out.shape))

            added = None if bias is None else read(bias)
            weights = prelu_activation_weights if activation == "prelu" else None
            slope = None if weights is None else read(weights)

            def finish(total: Expression) -> Expression:
                total = total if added is None else total + added
                return _activated(activation, total, leakyrelu_alpha, slope)

            return finish

        return convolve(
            x, filter, attributes=attributes, data_format=data_format, out=out, prepare=prepare
        )


_register(specs.FUSED_CONV2D, convolution.convolve)
_register(specs.FUSED_DEPTHWISE_CONV2D, depthwise.convolve)
