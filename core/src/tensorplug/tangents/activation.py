"""Tangents of activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.elementwise import exp
from tensorplug.ops.nn import activation as ops
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()
tangents.elementwise(
    *(ops.RELU, ops.RELU6, ops.ELU, ops.SELU, ops.LEAKY_RELU, ops.PRELU, ops.SOFTPLUS),
    *(ops.SIGMOID, ops.SIGMOID_GRAD, ops.ELU_GRAD),
)
tangents.symmetric(ops.SOFTMAX, "logits")


@tangents.wrt(ops.LOG_SOFTMAX, "logits")
def log_softmax(logits_dot: Tensor, out: Tensor, axis: int) -> Tensor:
    return logits_dot - sum_(exp(out) * logits_dot, axis=axis, keepdims=True)
