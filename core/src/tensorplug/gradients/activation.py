"""Gradients of activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import activation as ops
from tensorplug.ops.elementwise import exp, where
from tensorplug.ops.reduction import sum as sum_
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

gradients = GradientTable()


@gradients.wrt(ops.RELU, "x")
def relu(dy: Tensor, out: Tensor) -> Tensor:
    return where(out > 0, dy, 0.0)


@gradients.wrt(ops.SIGMOID, "x")
def sigmoid(dy: Tensor, out: Tensor) -> Tensor:
    return dy * out * (1.0 - out)


@gradients.wrt(ops.SOFTMAX, "logits")
def softmax(dy: Tensor, out: Tensor, dim: int) -> Tensor:
    return (dy - sum_(dy * out, axis=dim, keepdims=True)) * out


@gradients.wrt(ops.LOG_SOFTMAX, "logits")
def log_softmax(dy: Tensor, out: Tensor, axis: int) -> Tensor:
    return dy - exp(out) * sum_(dy, axis=axis, keepdims=True)
