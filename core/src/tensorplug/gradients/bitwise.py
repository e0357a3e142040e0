"""Bitwise ops have no gradients."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops import bitwise as ops

gradients: GradientTable = GradientTable()
gradients.stop(ops.BITWISE_AND, because="whole numbers")
gradients.stop(ops.BITWISE_OR, because="whole numbers")
gradients.stop(ops.BITWISE_XOR, because="whole numbers")
gradients.stop(ops.INVERT, because="whole numbers")
gradients.stop(ops.LEFT_SHIFT, because="whole numbers")
gradients.stop(ops.RIGHT_SHIFT, because="whole numbers")
