"""Gradients of softmax cross-entropy and of the gradient kernels of softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import ones_like
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal
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
    logits=lambda ddy, dy, labels, logits: _along_softmax(
        ddy * (expand_dims(dy, axis=-1) * _total(labels)), logits
    ),
)

# SparseSoftmaxCrossEntropyGrad(dy, labels, logits) = dy * (softmax(logits) - one_hot(labels)), and
# 0 where dy is 0: not even a NaN counts in a row that is ignored.

for _spec in (ops.SPARSE_SOFTMAX_CROSS_ENTROPY, ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD):
    rules.stop(_spec, "labels", because="the number of a class is an integer")


rules.formulas(
    ops.SPARSE_SOFTMAX_CROSS_ENTROPY,
    logits=lambda dy, labels, logits: dispatch(
        ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, dy, labels, logits
    ),
)
rules.formulas(
    ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD,
    logits=lambda ddy, dy, logits: _along_rows(ddy, dy, logits),
)


@rules.vjp(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "dy")
def sparse_cross_entropy_grad_wrt_dy(ddy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    chosen = take_along_axis(ddy, expand_dims(labels, axis=-1), axis=-1)
    return sum_(ddy * softmax(logits), axis=-1) - squeeze(chosen, axis=-1)


# SoftmaxGrad(dy, y) = y * (dy - sum(y * dy)), a symmetric matrix times dy.


rules.formulas(
    ops.SOFTMAX_GRAD,
    dy=lambda ddy, y, dim: dispatch(ops.SOFTMAX_GRAD, ddy, y, dim=dim),
    y=lambda ddy, dy, y, dim: ddy * (dy - _total(dy * y, dim)) - dy * _total(ddy * y, dim),
)


def _total(x: Tensor, axis: int = -1) -> Tensor:
    return sum_(x, axis=axis, keepdims=True)


rules.jvp(ops.SOFTMAX_CROSS_ENTROPY, "labels")(
    lambda labels_dot, logits: dispatch(ops.SOFTMAX_CROSS_ENTROPY, labels_dot, logits)
)


def _register_along_logits(spec: KernelSpec, grad: KernelSpec) -> None:
    @rules.jvp(spec, "logits")
    def along_logits(logits_dot: Tensor, labels: Tensor, logits: Tensor, out: Tensor) -> Tensor:
        slope = dispatch(grad, ones_like(out), labels, logits)
        return sum_(slope * logits_dot, axis=-1)


_register_along_logits(ops.SOFTMAX_CROSS_ENTROPY, ops.SOFTMAX_CROSS_ENTROPY_GRAD)
_register_along_logits(ops.SPARSE_SOFTMAX_CROSS_ENTROPY, ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD)
rules.jvp(ops.SOFTMAX_CROSS_ENTROPY_GRAD, "logits")(
    lambda logits_dot, dy, labels, logits: (
        expand_dims(dy, axis=-1) * _total(labels) * _along_softmax(logits_dot, logits)
    )
)
rules.jvp(ops.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD, "logits")(
    lambda logits_dot, dy, logits: _along_rows(logits_dot, dy, logits)
)


def _along_rows(along: Tensor, dy: Tensor, logits: Tensor) -> Tensor:
    slope = expand_dims(dy, axis=-1)
    return where(equal(slope, 0), 0, slope * _along_softmax(along, logits))


def _along_softmax(logits_dot: Tensor, logits: Tensor) -> Tensor:
    return dispatch(ops.SOFTMAX_GRAD, logits_dot, softmax(logits), dim=-1)


rules.jvp(ops.SOFTMAX_GRAD, "y")(
    lambda y_dot, dy, y, dim: y_dot * (dy - _total(y * dy, dim)) - y * _total(y_dot * dy, dim)
)
