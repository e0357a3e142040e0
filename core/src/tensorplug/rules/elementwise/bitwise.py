"""Bitwise ops have no gradients."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise import bitwise as ops

rules: RuleTable = RuleTable()
rules.stop(ops.BITWISE_AND, because="whole numbers")
rules.stop(ops.BITWISE_OR, because="whole numbers")
rules.stop(ops.BITWISE_XOR, because="whole numbers")
rules.stop(ops.INVERT, because="whole numbers")
rules.stop(ops.LEFT_SHIFT, because="whole numbers")
rules.stop(ops.RIGHT_SHIFT, because="whole numbers")
