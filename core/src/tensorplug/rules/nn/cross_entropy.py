"""Gradients of softmax cross-entropy and of the gradient kernels of softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import ones_like
from tensorplug.ops.indexing.indexing import take_along_axis
from tensorplug.ops.movement import expand_dims, squeeze
from tensorplug.ops.nn import cross_entropy as ops
from tensorplug.ops.nn.activation import log_softmax, softmax
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


rules.formulas(
    ops.SOFTMAX_CROSS_ENTROPY,
    labels=lambda dy, logits: -expand_dims(dy, axis=-1) * log_softmax(logits),
    logits=lambda dy, labels, logits: dispatch(ops.SOFTMAX_CROSS_ENTROPY_GRAD, dy, labels, logits),
)


# SoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) * sum(labels) - labels).


rules.formulas(
    ops.SOFTMAX_CROSS_ENTROPY_GRAD,
    dy=lambda ddy, labels, logits: sum_(
        ddy * (softmax(logits) * _total(labels) - labels), axis=-1
    ),
    labels=lambda ddy, dy, logits: (
        expand_dims(dy, axis=-1) * (_total(ddy * softmax(logits)) - ddy)
    ),
)


@rules.vjp(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "logits")
def cross_entropy_grad_wrt_logits(
    ddy: Tensor, dy: Tensor, labels: Tensor, logits: Tensor
) -> Tensor:
    weighted = ddy * (expand_dims(dy, axis=-1) * _total(labels))
    return dispatch(ops.SOFTMAX_GRAD, weighted, softmax(logits), dim=-1)


# SparseSoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) - one_hot(labels)).

for _spec in (ops.SPARSE_SOFTMAX_CROSS_ENTROPY, ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD):
    rules.stop(_spec, "labels", because="the number of a class is an integer")


@rules.vjp(ops.SPARSE_SOFTMAX_CROSS_ENTROPY, "logits")
def sparse_cross_entropy_wrt_logits(dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    return dispatch(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, dy, labels, logits)


@rules.vjp(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "dy")
def sparse_cross_entropy_grad_wrt_dy(ddy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    chosen = take_along_axis(ddy, expand_dims(labels, axis=-1), axis=-1)
    return sum_(ddy * softmax(logits), axis=-1) - squeeze(chosen, axis=-1)


@rules.vjp(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "logits")
def sparse_cross_entropy_grad_wrt_logits(ddy: Tensor, dy: Tensor, logits: Tensor) -> Tensor:
    weighted = ddy * expand_dims(dy, axis=-1)
    return dispatch(ops.SOFTMAX_GRAD, weighted, softmax(logits), dim=-1)


# SoftmaxGrad(dy, y) = y * (dy - sum(y * dy)), a symmetric matrix times dy.


rules.formulas(
    ops.SOFTMAX_GRAD, dy=lambda ddy, y, dim: dispatch(ops.SOFTMAX_GRAD, ddy, y, dim=dim)
)


@rules.vjp(ops.SOFTMAX_GRAD, "y")
def softmax_grad_wrt_y(ddy: Tensor, dy: Tensor, y: Tensor, dim: int) -> Tensor:
    passed = sum_(dy * y, axis=dim, keepdims=True)
    back = sum_(ddy * y, axis=dim, keepdims=True)
    return ddy * (dy - passed) - dy * back


def _total(x: Tensor) -> Tensor:
    return sum_(x, axis=-1, keepdims=True)


rules.jvp(ops.SOFTMAX_CROSS_ENTROPY, "labels")(
    lambda labels_dot, logits: -sum_(labels_dot * log_softmax(logits), axis=-1)
)


def _register_along_logits(spec: KernelSpec, grad: KernelSpec) -> None:
    @rules.jvp(spec, "logits")
    def along_logits(logits_dot: Tensor, labels: Tensor, logits: Tensor, out: Tensor) -> Tensor:
        slope = dispatch(grad, ones_like(out), labels, logits)
        return sum_(slope * logits_dot, axis=-1)


_register_along_logits(ops.SOFTMAX_CROSS_ENTROPY, ops.SOFTMAX_CROSS_ENTROPY_GRAD)
_register_along_logits(ops.SPARSE_SOFTMAX_CROSS_ENTROPY, ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD)


# SoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) * sum(labels) - labels), and
# SparseSoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) - one_hot(labels)).


@rules.jvp(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "logits")
def cross_entropy_grad(logits_dot: Tensor, dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    total = sum_(labels, axis=-1, keepdims=True)
    return expand_dims(dy, axis=-1) * total * _along_softmax(logits_dot, logits)


rules.jvp(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "logits")(
    lambda logits_dot, dy, logits: expand_dims(dy, axis=-1) * _along_softmax(logits_dot, logits)
)


def _along_softmax(logits_dot: Tensor, logits: Tensor) -> Tensor:
    return dispatch(ops.SOFTMAX_GRAD, logits_dot, softmax(logits), dim=-1)


# SoftmaxGrad(dy, y) = y * (dy - sum(y * dy)).


@rules.jvp(ops.SOFTMAX_GRAD, "y")
def softmax_grad(y_dot: Tensor, dy: Tensor, y: Tensor, dim: int) -> Tensor:
    passed = sum_(y * dy, axis=dim, keepdims=True)
    return y_dot * (dy - passed) - y * sum_(y_dot * dy, axis=dim, keepdims=True)
