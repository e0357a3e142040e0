"""Coordinates have no gradients."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops.indexing import coordinates as ops

gradients: GradientTable = GradientTable()
gradients.stop(ops.WHERE, because="gives coordinates: whole numbers")
