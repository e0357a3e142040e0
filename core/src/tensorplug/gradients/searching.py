"""Positions in sorted sequences are constant between jumps, so they have no gradients."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops import searching as ops

gradients: GradientTable = GradientTable()
gradients.stop(ops.SEARCH_SORTED, because="gives places: whole numbers")
gradients.stop(ops.LOWER_BOUND, because="gives places: whole numbers")
gradients.stop(ops.UPPER_BOUND, because="gives places: whole numbers")
