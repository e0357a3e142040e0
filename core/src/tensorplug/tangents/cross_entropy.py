"""Tangents of softmax cross-entropy and of the gradient kernels of softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import ones_like
from tensorplug.ops.movement import expand_dims
from tensorplug.ops.nn import cross_entropy as ops
from tensorplug.ops.nn.activation import log_softmax, softmax
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()


@tangents.wrt(ops.SOFTMAX_CROSS_ENTROPY, "labels")
def cross_entropy_along_labels(labels_dot: Tensor, logits: Tensor) -> Tensor:
    return -sum_(labels_dot * log_softmax(logits), axis=-1)


def _register_along_logits(spec: KernelSpec, grad: KernelSpec) -> None:
    @tangents.wrt(spec, "logits")
    def along_logits(logits_dot: Tensor, labels: Tensor, logits: Tensor, out: Tensor) -> Tensor:
        slope = dispatch(grad, ones_like(out), labels, logits)
        return sum_(slope * logits_dot, axis=-1)


_register_along_logits(ops.SOFTMAX_CROSS_ENTROPY, ops.SOFTMAX_CROSS_ENTROPY_GRAD)
_register_along_logits(ops.SPARSE_SOFTMAX_CROSS_ENTROPY, ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD)


# SoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) * sum(labels) - labels), and
# SparseSoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) - one_hot(labels)).

tangents.linear(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "dy")
tangents.linear(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "labels")
tangents.linear(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "dy")


@tangents.wrt(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "logits")
def cross_entropy_grad(logits_dot: Tensor, dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    total = sum_(labels, axis=-1, keepdims=True)
    return expand_dims(dy, axis=-1) * total * _along_softmax(logits_dot, logits)


@tangents.wrt(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "logits")
def sparse_cross_entropy_grad(logits_dot: Tensor, dy: Tensor, logits: Tensor) -> Tensor:
    return expand_dims(dy, axis=-1) * _along_softmax(logits_dot, logits)


def _along_softmax(logits_dot: Tensor, logits: Tensor) -> Tensor:
    return dispatch(ops.SOFTMAX_GRAD, logits_dot, softmax(logits), dim=-1)


# SoftmaxGrad(dy, y) = y * (dy - sum(y * dy)).

tangents.linear(ops.SOFTMAX_GRAD, "dy")


@tangents.wrt(ops.SOFTMAX_GRAD, "y")
def softmax_grad(y_dot: Tensor, dy: Tensor, y: Tensor, dim: int) -> Tensor:
    passed = sum_(y * dy, axis=dim, keepdims=True)
    return y_dot * (dy - passed) - y * sum_(y_dot * dy, axis=dim, keepdims=True)
