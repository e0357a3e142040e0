"""Gradients of the fused kernels: back through the activation once, then through the product.

For most activations, the output shows where they cut off. For a PReLU, and for a leaky ReLU with
a negative slope, it does not; there the sum before the activation is computed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.rules import RuleTable
from tensorplug.contract.windows import channel_axis
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import zeros_like
from tensorplug.ops.elementwise.arithmetic import add
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import logical_and
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.nn import fused as ops
from tensorplug.ops.nn.convolution import convolution, depthwise
from tensorplug.ops.nn.convolution.correlation import window_attributes
from tensorplug.ops.reduction import sum as sum_
from tensorplug.rules.matrix_products import product_wrt_a, product_wrt_b

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Family

    Maybe = Tensor | None

rules: RuleTable = RuleTable()
Attributes = dict[str, Any]
_WEIGHTS: Final = "prelu_activation_weights"


@dataclass(frozen=True)
class Call:
    """A call of a fused kernel."""

    product: Callable[[], Tensor]
    bias: Tensor | None
    weights: Tensor | None
    out: Tensor
    attributes: Attributes

    def aligned(self, x: Tensor) -> Tensor:
        """Return one number per channel, ready to broadcast."""
        return ops.align(x, self.out.ndim, self.attributes.get("data_format"))

    @cached_property
    def before(self) -> Tensor:
        """The sum before the activation."""
        product = self.product()
        return product if self.bias is None else product + self.aligned(self.bias)

    def through(self, dy: Tensor) -> Tensor:
        """Return ``dy`` times the activation's slope: backward, or forward for a tangent."""
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
            sign = out if alpha >= 0 else self.before
            return where(sign > 0, dy, dy * alpha)
        assert self.weights is not None  # the spec requires them for a PReLU
        return where(self.before > 0, dy, dy * self.aligned(self.weights))

    def to_weights(self, dy: Tensor, weights_type: TensorType) -> Tensor:
        """Return the cotangent of a PReLU's slopes."""
        assert self.weights is not None  # the gradient is with respect to them
        if self.attributes["activation"] != "prelu":
            return zeros_like(self.weights)
        before = self.before
        return self.restored(where(before > 0, 0.0, dy * before), weights_type)

    def restored(self, dy: Tensor, x_type: TensorType) -> Tensor:
        """Return the cotangent of a bias, or slopes, that were aligned with the channels."""
        data_format = self.attributes.get("data_format")
        if ops.channel_broadcast_shape(x_type.shape, dy.ndim, data_format) == x_type.shape:
            return dy  # the tape sums it
        kept = channel_axis(str(data_format))
        return sum_(dy, axis=tuple(at for at in range(dy.ndim) if at != kept))


def _register_convolution(spec: KernelSpec, family: Family) -> None:
    """Register the rule of a fused convolution."""

    @rules.vjp(spec)
    def fused_convolution(
        wanted: frozenset[str],
        dy: Tensor,
        x: Tensor,
        filter: Tensor,
        bias: Tensor | None,
        bias_type: TensorType,
        prelu_activation_weights: Tensor | None,
        prelu_activation_weights_type: TensorType,
        out: Tensor,
        attributes: Attributes,
    ) -> dict[str, Tensor]:
        window = window_attributes(attributes)
        multiply = partial(dispatch, family.forward, x, filter, **window)
        call = Call(multiply, bias, prelu_activation_weights, out, attributes)
        inner = call.through(dy)
        to_x, to_filter = family.backprop_input, family.backprop_filter
        slopes: dict[str, Callable[[], Tensor]] = {
            "x": lambda: dispatch(to_x, inner, filter, **window, input_shape=x.shape),
            "filter": lambda: dispatch(to_filter, x, inner, **window, filter_shape=filter.shape),
            "bias": lambda: call.restored(inner, bias_type),
            _WEIGHTS: lambda: call.to_weights(dy, prelu_activation_weights_type),
        }
        return {name: slopes[name]() for name in wanted}


_register_convolution(ops.FUSED_CONV2D, convolution.FAMILY)
_register_convolution(ops.FUSED_DEPTHWISE_CONV2D, depthwise.FAMILY)


@rules.vjp(ops.FUSED_MAT_MUL)
def fused_mat_mul(
    wanted: frozenset[str],
    dy: Tensor,
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    prelu_activation_weights: Tensor | None,
    prelu_activation_weights_type: TensorType,
    out: Tensor,
    attributes: Attributes,
) -> dict[str, Tensor]:
    a_turned, b_turned = attributes["transpose_a"], attributes["transpose_b"]
    multiply = partial(matmul, a, b, transpose_a=a_turned, transpose_b=b_turned)
    call = Call(multiply, bias, prelu_activation_weights, out, attributes)
    inner = call.through(dy)
    slopes: dict[str, Callable[[], Tensor]] = {
        "a": lambda: product_wrt_a(inner, b, transpose_a=a_turned, transpose_b=b_turned),
        "b": lambda: product_wrt_b(inner, a, transpose_a=a_turned, transpose_b=b_turned),
        "bias": lambda: inner,  # the tape sums it
        _WEIGHTS: lambda: call.to_weights(dy, prelu_activation_weights_type),
    }
    return {name: slopes[name]() for name in wanted}


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
    along = [call.through(reduce(add, parts))] if parts else []
    if weights_dot is not None and attributes["activation"] == "prelu":
        before = call.before
        along.append(where(before > 0, 0.0, before * call.aligned(weights_dot)))
    return reduce(add, along) if along else out * 0.0


def _register_convolution_jvp(spec: KernelSpec, forward: KernelSpec) -> None:
    @rules.jvp(spec, "x", "filter", "bias", _WEIGHTS)
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


_register_convolution_jvp(ops.FUSED_CONV2D, convolution.FAMILY.forward)
_register_convolution_jvp(ops.FUSED_DEPTHWISE_CONV2D, depthwise.FAMILY.forward)


@rules.jvp(ops.FUSED_MAT_MUL, "a", "b", "bias", _WEIGHTS)
def fused_mat_mul_jvp(
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
