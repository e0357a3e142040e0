"""Bits have no derivatives."""

from __future__ import annotations

from tensorplug.ops import bitwise as ops
from tensorplug.tables import GradientTable

gradients = GradientTable()
gradients.stop(ops.BITWISE_AND)
gradients.stop(ops.BITWISE_OR)
gradients.stop(ops.BITWISE_XOR)
gradients.stop(ops.INVERT)
gradients.stop(ops.LEFT_SHIFT)
gradients.stop(ops.RIGHT_SHIFT)
