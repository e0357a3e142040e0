"""Coordinates have no gradients."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.indexing import coordinates as ops

rules: RuleTable = RuleTable()
rules.stop(ops.WHERE, because="gives coordinates: whole numbers")
