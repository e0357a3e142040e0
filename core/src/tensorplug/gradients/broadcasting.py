"""Shapes have no gradients."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops import broadcasting as ops

gradients: GradientTable = GradientTable()
gradients.stop(ops.BROADCAST_ARGS, because="shapes: whole numbers")
