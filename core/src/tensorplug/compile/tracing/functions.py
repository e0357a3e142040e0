"""Elementary functions that a device declares: one call in a program (docs/adr/0090)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.expressions import parameter
from tensorplug.engine.widening import find_decomposition
from tensorplug.ops import reduction

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression
    from tensorplug.engine.plans import Plan


def expression_of(plan: Plan) -> Expression | None:
    """Return what a call computes in each element, by its spec; None if that does not say it."""
    rule = plan.spec.expression_rule
    if rule is None:
        return None
    operands = [
        [parameter(0, member.dtype) for member in type_]
        if isinstance(type_, list)
        else type_ and parameter(0, type_.dtype)
        for type_ in plan.inputs
    ]
    return rule(operands, plan.attributes, plan.output.type)


def may_wait(plan: Plan) -> bool:
    """Return whether a group may compute a call, or a trace has nothing else to record."""
    ways = plan.spec is reduction.MEAN or find_decomposition(plan) is None or expression_of(plan)
    return plan.device.capabilities.groups is not None and bool(ways)


def is_declared(plan: Plan) -> bool:
    """Return whether a call without a kernel is a function that groups of its device may have."""
    groups = plan.device.capabilities.groups
    if groups is None or plan.how != "decomposed":
        return False
    expression = expression_of(plan)
    return expression is not None and expression.op in groups.functions
