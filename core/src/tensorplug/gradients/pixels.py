"""Pixels are integers, so these ops have no gradients."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops.image import pixels as ops

gradients: GradientTable = GradientTable()
gradients.stop(ops.FROM_PIXELS, because="gives whole numbers")
gradients.stop(ops.DRAW, because="gives pixels: whole numbers")
