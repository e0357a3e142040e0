"""Gradients of the fused kernels: back through the activation, then through the product.

For most activations, the output shows where they cut off. For a PReLU, and for a leaky ReLU with
a negative slope, it does not; there the sum before the activation is computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.contract.tables import GradientTable
from tensorplug.contract.windows import channel_axis
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops import matrix_products
from tensorplug.ops.comparison import logical_and
from tensorplug.ops.creation import zeros_like
from tensorplug.ops.elementwise import where
from tensorplug.ops.nn import fused as ops
from tensorplug.ops.nn.convolution import convolution, depthwise
from tensorplug.ops.nn.convolution.correlation import window_attributes
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Family

gradients = GradientTable()

Attributes = dict[str, Any]


class _Call(NamedTuple):
    """The operands and the result of a fused kernel."""

    product: Callable[[], Tensor]
    bias: Tensor | None
    weights: Tensor | None
    out: Tensor
    attributes: Attributes

    def aligned(self, x: Tensor) -> Tensor:
        return ops.align(x, self.out.ndim, self.attributes.get("data_format"))

    def before(self) -> Tensor:
        """Return the sum before the activation."""
        product = self.product()
        return product if self.bias is None else product + self.aligned(self.bias)

    def through(self, dy: Tensor) -> Tensor:
        """Return the cotangent of the sum before the activation."""
        activation, out = self.attributes["activation"], self.out
        if activation == "linear":
            return dy
        if activation == "relu":
            return where(out > 0, dy, 0.0)
        if activation == "relu6":
            return where(logical_and(out > 0, out < 6), dy, 0.0)
        if activation == "elu":
            return where(out > 0, dy, dy * (where(out > 0, 0.0, out) + 1.0))
        if activation == "sigmoid":
            return dy * out * (1.0 - out)
        if activation == "leakyrelu":
            alpha = self.attributes["leakyrelu_alpha"]
            sign = out if alpha >= 0 else self.before()
            return where(sign > 0, dy, dy * alpha)
        assert self.weights is not None  # the spec requires them for a PReLU
        return where(self.before() > 0, dy, dy * self.aligned(self.weights))

    def to_weights(self, dy: Tensor, weights_type: TensorType) -> Tensor:
        """Return the cotangent of a PReLU's slopes."""
        assert self.weights is not None  # the gradient is with respect to them
        if self.attributes["activation"] != "prelu":
            return zeros_like(self.weights)
        before = self.before()
        return self.restored(where(before > 0, 0.0, dy * before), weights_type)

    def restored(self, dy: Tensor, x_type: TensorType) -> Tensor:
        """Return the cotangent of a bias, or slopes, that were aligned with the channels."""
        data_format = self.attributes.get("data_format")
        if ops.channel_broadcast_shape(x_type.shape, dy.ndim, data_format) == x_type.shape:
            return dy  # the tape sums it
        kept = channel_axis(str(data_format))
        return sum_(dy, axis=tuple(at for at in range(dy.ndim) if at != kept))


def _register_fused(spec: KernelSpec, family: Family) -> None:
    """Register the rules of a fused convolution."""

    def call(
        x: Tensor,
        filter: Tensor,
        bias: Tensor | None,
        weights: Tensor | None,
        out: Tensor,
        attributes: Attributes,
    ) -> _Call:
        window = window_attributes(attributes)
        return _Call(
            lambda: dispatch(family.forward, x, filter, **window), bias, weights, out, attributes
        )

    @gradients.wrt(spec, "x")
    def wrt_x(
        dy: Tensor,
        x: Tensor,
        filter: Tensor,
        bias: Tensor | None,
        prelu_activation_weights: Tensor | None,
        out: Tensor,
        attributes: Attributes,
    ) -> Tensor:
        made = call(x, filter, bias, prelu_activation_weights, out, attributes)
        window = window_attributes(attributes)
        inner = made.through(dy)
        return dispatch(family.backprop_input, inner, filter, **window, input_shape=x.shape)

    @gradients.wrt(spec, "filter")
    def wrt_filter(
        dy: Tensor,
        x: Tensor,
        filter: Tensor,
        bias: Tensor | None,
        prelu_activation_weights: Tensor | None,
        out: Tensor,
        attributes: Attributes,
    ) -> Tensor:
        made = call(x, filter, bias, prelu_activation_weights, out, attributes)
        window = window_attributes(attributes)
        inner = made.through(dy)
        return dispatch(family.backprop_filter, x, inner, **window, filter_shape=filter.shape)

    @gradients.wrt(spec, "bias")
    def wrt_bias(
        dy: Tensor,
        x: Tensor,
        filter: Tensor,
        bias: Tensor,
        bias_type: TensorType,
        prelu_activation_weights: Tensor | None,
        out: Tensor,
        attributes: Attributes,
    ) -> Tensor:
        made = call(x, filter, bias, prelu_activation_weights, out, attributes)
        return made.restored(made.through(dy), bias_type)

    @gradients.wrt(spec, "prelu_activation_weights")
    def wrt_weights(
        dy: Tensor,
        x: Tensor,
        filter: Tensor,
        bias: Tensor | None,
        prelu_activation_weights: Tensor,
        prelu_activation_weights_type: TensorType,
        out: Tensor,
        attributes: Attributes,
    ) -> Tensor:
        made = call(x, filter, bias, prelu_activation_weights, out, attributes)
        return made.to_weights(dy, prelu_activation_weights_type)


_register_fused(ops.FUSED_CONV2D, convolution.FAMILY)
_register_fused(ops.FUSED_DEPTHWISE_CONV2D, depthwise.FAMILY)


def _make_call(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    weights: Tensor | None,
    out: Tensor,
    attributes: Attributes,
) -> _Call:
    flags = {name: attributes[name] for name in ("transpose_a", "transpose_b")}
    return _Call(lambda: matrix_products.matmul(a, b, **flags), bias, weights, out, attributes)


@gradients.wrt(ops.FUSED_MAT_MUL, "a")
def fused_mat_mul_wrt_a(
    dy: Tensor,
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    prelu_activation_weights: Tensor | None,
    out: Tensor,
    attributes: Attributes,
) -> Tensor:
    inner = _make_call(a, b, bias, prelu_activation_weights, out, attributes).through(dy)
    turned = attributes["transpose_b"]
    if attributes["transpose_a"]:
        return matrix_products.matmul(b, inner, transpose_a=turned, transpose_b=True)
    return matrix_products.matmul(inner, b, transpose_b=not turned)


@gradients.wrt(ops.FUSED_MAT_MUL, "b")
def fused_mat_mul_wrt_b(
    dy: Tensor,
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    prelu_activation_weights: Tensor | None,
    out: Tensor,
    attributes: Attributes,
) -> Tensor:
    inner = _make_call(a, b, bias, prelu_activation_weights, out, attributes).through(dy)
    turned = attributes["transpose_a"]
    if attributes["transpose_b"]:
        return matrix_products.matmul(inner, a, transpose_a=True, transpose_b=turned)
    return matrix_products.matmul(a, inner, transpose_a=not turned)


@gradients.wrt(ops.FUSED_MAT_MUL, "bias")
def fused_mat_mul_wrt_bias(
    dy: Tensor,
    a: Tensor,
    b: Tensor,
    bias: Tensor,
    prelu_activation_weights: Tensor | None,
    out: Tensor,
    attributes: Attributes,
) -> Tensor:
    return _make_call(a, b, bias, prelu_activation_weights, out, attributes).through(dy)


@gradients.wrt(ops.FUSED_MAT_MUL, "prelu_activation_weights")
def fused_mat_mul_wrt_weights(
    dy: Tensor,
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    prelu_activation_weights: Tensor,
    prelu_activation_weights_type: TensorType,
    out: Tensor,
    attributes: Attributes,
) -> Tensor:
    made = _make_call(a, b, bias, prelu_activation_weights, out, attributes)
    return made.to_weights(dy, prelu_activation_weights_type)
