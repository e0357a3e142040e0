"""Comparisons and logic stop gradients."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise import comparison as ops

rules: RuleTable = RuleTable()
for _spec in (
    ops.EQUAL,
    ops.NOT_EQUAL,
    ops.LESS,
    ops.LESS_EQUAL,
    ops.GREATER,
    ops.GREATER_EQUAL,
    ops.LOGICAL_AND,
    ops.LOGICAL_OR,
    ops.LOGICAL_XOR,
    ops.LOGICAL_NOT,
    ops.IS_FINITE,
    ops.IS_INF,
    ops.IS_NAN,
):
    rules.stop(_spec, because="gives truth values")
