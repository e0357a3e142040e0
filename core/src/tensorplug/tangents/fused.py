"""Tangents of the fused kernels: through the product, then through the activation."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.gradients.fused import Call
from tensorplug.ops.elementwise import add, where
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.nn import fused as ops
from tensorplug.ops.nn.convolution import convolution, depthwise
from tensorplug.ops.nn.convolution.correlation import window_attributes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

    Attributes = dict[str, Any]
    Maybe = Tensor | None

tangents: TangentTable = TangentTable()


def _push(
    multiply: Callable[[Tensor, Tensor], Tensor],
    factors: tuple[Tensor, Tensor],
    factors_dot: tuple[Maybe, Maybe],
    bias: tuple[Maybe, Maybe],
    weights: tuple[Maybe, Maybe],
    out: Tensor,
    attributes: Attributes,
) -> Tensor:
    """Return the tangent of ``activation(multiply(*factors) + bias)``.

    ``bias`` and the activation's ``weights`` each with the tangent.
    """
    (a, b), (a_dot, b_dot), (_, bias_dot), (_, weights_dot) = factors, factors_dot, bias, weights
    call = Call(lambda: multiply(a, b), bias[0], weights[0], out, attributes)
    parts: list[Tensor] = []
    if a_dot is not None:
        parts.append(multiply(a_dot, b))
    if b_dot is not None:
        parts.append(multiply(a, b_dot))
    if bias_dot is not None:
        parts.append(call.aligned(bias_dot))
    found = [call.through(reduce(add, parts))] if parts else []
    if weights_dot is not None and attributes["activation"] == "prelu":
        before = call.before
        found.append(where(before > 0, 0.0, before * call.aligned(weights_dot)))
    return reduce(add, found) if found else out * 0.0


def _register_convolution(spec: KernelSpec, forward: KernelSpec) -> None:
    @tangents.wrt(spec, "x", "filter", "bias", "prelu_activation_weights")
    def fused_convolution(
        x_dot: Maybe,
        filter_dot: Maybe,
        bias_dot: Maybe,
        prelu_activation_weights_dot: Maybe,
        x: Tensor,
        filter: Tensor,
        bias: Maybe,
        prelu_activation_weights: Maybe,
        out: Tensor,
        attributes: Attributes,
    ) -> Tensor:
        multiply = partial(dispatch, forward, **window_attributes(attributes))
        weights = prelu_activation_weights, prelu_activation_weights_dot
        dots = x_dot, filter_dot
        return _push(multiply, (x, filter), dots, (bias, bias_dot), weights, out, attributes)


_register_convolution(ops.FUSED_CONV2D, convolution.FAMILY.forward)
_register_convolution(ops.FUSED_DEPTHWISE_CONV2D, depthwise.FAMILY.forward)


@tangents.wrt(ops.FUSED_MAT_MUL, "a", "b", "bias", "prelu_activation_weights")
def fused_mat_mul(
    a_dot: Maybe,
    b_dot: Maybe,
    bias_dot: Maybe,
    prelu_activation_weights_dot: Maybe,
    a: Tensor,
    b: Tensor,
    bias: Maybe,
    prelu_activation_weights: Maybe,
    out: Tensor,
    attributes: Attributes,
) -> Tensor:
    turned = {name: attributes[name] for name in ("transpose_a", "transpose_b")}
    weights = prelu_activation_weights, prelu_activation_weights_dot
    multiply, dots = partial(matmul, **turned), (a_dot, b_dot)
    return _push(multiply, (a, b), dots, (bias, bias_dot), weights, out, attributes)
