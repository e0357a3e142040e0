"""Coordinates have no derivative."""

from __future__ import annotations

from tensorplug.ops import coordinates as ops
from tensorplug.tables import GradientTable

gradients = GradientTable()
gradients.stop(ops.WHERE, because="gives coordinates: whole numbers")
