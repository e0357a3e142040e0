"""Fused kernels as a product, a bias and an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import DecompositionTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.nn import activation as nn
from tensorplug.ops.nn import fused as ops
from tensorplug.ops.nn.convolution import convolution, depthwise
from tensorplug.ops.nn.convolution.correlation import window_attributes

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Family

decompositions: DecompositionTable = DecompositionTable(alone=True)

Attributes = dict[str, Any]

_PLAIN = {"relu": nn.relu, "relu6": nn.relu6, "elu": nn.elu, "sigmoid": nn.sigmoid}


def _activate(
    product: Tensor,
    bias: Tensor | None,
    weights: Tensor | None,
    attributes: Attributes,
) -> Tensor:
    data_format = attributes.get("data_format")
    activation = attributes["activation"]
    total = product
    if bias is not None:
        total = product + ops.align(bias, product.ndim, data_format)
    if activation == "linear":
        return total
    if activation == "leakyrelu":
        return nn.leaky_relu(total, attributes["leakyrelu_alpha"])
    if activation == "prelu":
        assert weights is not None  # the spec checks this
        return nn.prelu(total, ops.align(weights, product.ndim, data_format))
    return _PLAIN[activation](total)


def _register_fused(spec: KernelSpec, family: Family) -> None:
    @decompositions.of(spec)
    def convolution(
        x: Tensor,
        filter: Tensor,
        bias: Tensor | None,
        prelu_activation_weights: Tensor | None,
        *,
        attributes: Attributes,
    ) -> Tensor:
        product = dispatch(family.forward, x, filter, **window_attributes(attributes))
        return _activate(product, bias, prelu_activation_weights, attributes)


_register_fused(ops.FUSED_CONV2D, convolution.FAMILY)
_register_fused(ops.FUSED_DEPTHWISE_CONV2D, depthwise.FAMILY)


@decompositions.of(ops.FUSED_MAT_MUL)
def fused_mat_mul(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    prelu_activation_weights: Tensor | None,
    *,
    attributes: Attributes,
) -> Tensor:
    product = matmul(
        a, b, transpose_a=attributes["transpose_a"], transpose_b=attributes["transpose_b"]
    )
    return _activate(product, bias, prelu_activation_weights, attributes)
