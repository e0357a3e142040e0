"""Tangents of activation functions."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.nn import activation as ops

tangents = TangentTable()
tangents.elementwise(
    *(ops.RELU, ops.RELU6, ops.ELU, ops.SELU, ops.LEAKY_RELU, ops.PRELU, ops.SOFTPLUS),
    *(ops.SIGMOID, ops.SIGMOID_GRAD, ops.ELU_GRAD),
)
