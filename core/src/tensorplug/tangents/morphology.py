"""Tangents of the gradient kernels of dilation, along what came in."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.nn.convolution import morphology as ops

tangents: TangentTable = TangentTable()
tangents.linear(ops.DILATION2D_BACKPROP_INPUT, "dy")
tangents.linear(ops.DILATION2D_BACKPROP_FILTER, "dy")
