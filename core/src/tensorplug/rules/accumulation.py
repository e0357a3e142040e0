"""Gradients of multiply-add."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import accumulation as ops

rules: RuleTable = RuleTable()
rules.formulas(ops.MULTIPLY_ADD, x=lambda dy, y: dy * y, y=lambda dy, x: dy * x, z=lambda dy: dy)
