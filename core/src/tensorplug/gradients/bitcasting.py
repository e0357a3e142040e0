"""Gradients of reading bits as another dtype: none."""

from __future__ import annotations

from tensorplug.contract.tables import GradientTable
from tensorplug.ops import bitcasting as ops

gradients = GradientTable()
gradients.stop(ops.BITCAST, because="bits are no continuous function of a number")
