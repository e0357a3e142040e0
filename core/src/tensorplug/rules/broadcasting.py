"""Shapes have no gradients."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import broadcasting as ops

rules: RuleTable = RuleTable()
rules.stop(ops.BROADCAST_ARGS, because="shapes: whole numbers")
