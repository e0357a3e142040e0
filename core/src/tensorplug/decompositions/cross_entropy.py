"""Softmax cross-entropy and the gradient kernels of softmax, from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.movement import expand_dims
from tensorplug.ops.nn import cross_entropy as ops
from tensorplug.ops.nn.activation import log_softmax, softmax
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.SOFTMAX_CROSS_ENTROPY)
def cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    return -sum_(labels * log_softmax(logits), axis=-1)


@decompositions.of(ops.SOFTMAX_CROSS_ENTROPY_GRAD)
def cross_entropy_grad(dy: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    whole = sum_(labels, axis=-1, keepdims=True)
    return expand_dims(dy, axis=-1) * (softmax(logits) * whole - labels)


@decompositions.of(ops.SOFTMAX_GRAD)
def softmax_grad(dy: Tensor, y: Tensor, *, dim: int) -> Tensor:
    return y * (dy - sum_(dy * y, axis=dim, keepdims=True))
