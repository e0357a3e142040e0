"""Engines with a statement about a kernel that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.owner import Owner
from tensorplug.plugin import RuleTable, specs
from tensorplug.plugins.assembly import build_engine

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine


def takes_quotients_for_linear() -> Engine:
    """Return an engine whose plugin says that a quotient is linear in both operands."""
    rules = RuleTable()
    rules.linear(specs.REAL_DIV, "a")
    rules.linear(specs.REAL_DIV, "b")
    engine = build_engine()
    engine.registry.add(Owner("saboteur"), rules=rules, override=True)
    return engine


def takes_scans_for_elementwise() -> Engine:
    """Return an engine whose plugin says that running products are elementwise."""
    rules = RuleTable()
    rules.elementwise(specs.CUMPROD)
    engine = build_engine()
    engine.registry.add(Owner("saboteur"), rules=rules, override=True)
    return engine
