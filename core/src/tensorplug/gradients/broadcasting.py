"""Shapes have no derivative."""

from __future__ import annotations

from tensorplug.ops import broadcasting as ops
from tensorplug.tables import GradientTable

gradients = GradientTable()
gradients.stop(ops.BROADCAST_ARGS, because="shapes: whole numbers")
