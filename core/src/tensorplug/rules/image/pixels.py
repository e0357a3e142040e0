"""Pixels are integers, so these ops have no gradients."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.image import pixels as ops

rules: RuleTable = RuleTable()
rules.stop(ops.FROM_PIXELS, because="gives whole numbers")
rules.stop(ops.DRAW, because="gives pixels: whole numbers")
