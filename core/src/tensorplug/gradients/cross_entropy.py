"""Gradients of softmax cross-entropy and of the gradient kernels of softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.indexing.indexing import take_along_axis
from tensorplug.ops.movement import expand_dims, squeeze
from tensorplug.ops.nn import cross_entropy as ops
from tensorplug.ops.nn.activation import log_softmax, softmax
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

gradients: GradientTable = GradientTable()


@gradients.wrt(ops.SOFTMAX_CROSS_ENTROPY, "labels")
def cross_entropy_wrt_labels(dy: Tensor, logits: Tensor) -> Tensor:
    return -expand_dims(dy, axis=-1) * log_softmax(logits)


@gradients.wrt(ops.SOFTMAX_CROSS_ENTROPY, "logits")
def cross_entropy_wrt_logits(dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    return dispatch(ops.SOFTMAX_CROSS_ENTROPY_GRAD, dy, labels, logits)


# SoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) * sum(labels) - labels).


@gradients.wrt(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "dy")
def cross_entropy_grad_wrt_dy(ddy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    return sum_(ddy * (softmax(logits) * _total(labels) - labels), axis=-1)


@gradients.wrt(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "labels")
def cross_entropy_grad_wrt_labels(ddy: Tensor, dy: Tensor, logits: Tensor) -> Tensor:
    return expand_dims(dy, axis=-1) * (_total(ddy * softmax(logits)) - ddy)


@gradients.wrt(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "logits")
def cross_entropy_grad_wrt_logits(
    ddy: Tensor, dy: Tensor, labels: Tensor, logits: Tensor
) -> Tensor:
    weighted = ddy * (expand_dims(dy, axis=-1) * _total(labels))
    return dispatch(ops.SOFTMAX_GRAD, weighted, softmax(logits), dim=-1)


# SparseSoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) - one_hot(labels)).

for _spec in (ops.SPARSE_SOFTMAX_CROSS_ENTROPY, ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD):
    gradients.stop(_spec, "labels", because="the number of a class is an integer")


@gradients.wrt(ops.SPARSE_SOFTMAX_CROSS_ENTROPY, "logits")
def sparse_cross_entropy_wrt_logits(dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    return dispatch(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, dy, labels, logits)


@gradients.wrt(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "dy")
def sparse_cross_entropy_grad_wrt_dy(ddy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    chosen = take_along_axis(ddy, expand_dims(labels, axis=-1), axis=-1)
    return sum_(ddy * softmax(logits), axis=-1) - squeeze(chosen, axis=-1)


@gradients.wrt(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "logits")
def sparse_cross_entropy_grad_wrt_logits(ddy: Tensor, dy: Tensor, logits: Tensor) -> Tensor:
    weighted = ddy * expand_dims(dy, axis=-1)
    return dispatch(ops.SOFTMAX_GRAD, weighted, softmax(logits), dim=-1)


# SoftmaxGrad(dy, y) = y * (dy - sum(y * dy)), a symmetric matrix times dy.


@gradients.wrt(ops.SOFTMAX_GRAD, "dy")
def softmax_grad_wrt_dy(ddy: Tensor, y: Tensor, dim: int) -> Tensor:
    return dispatch(ops.SOFTMAX_GRAD, ddy, y, dim=dim)


@gradients.wrt(ops.SOFTMAX_GRAD, "y")
def softmax_grad_wrt_y(ddy: Tensor, dy: Tensor, y: Tensor, dim: int) -> Tensor:
    passed = sum_(dy * y, axis=dim, keepdims=True)
    back = sum_(ddy * y, axis=dim, keepdims=True)
    return ddy * (dy - passed) - dy * back


def _total(x: Tensor) -> Tensor:
    return sum_(x, axis=-1, keepdims=True)
