"""Passes over programs: common subexpressions, dead code, and values used by a later part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.compile.tracing.values import Constant, Value

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from tensorplug.compile.tracing.calls import Operand


Wanted = Value | Constant


def eliminate_common_calls(
    calls: Sequence[Call], results: Sequence[Wanted]
) -> tuple[list[Call], list[Wanted]]:
    """Remove repeated calls with the same plan and inputs; return the calls and wanted values."""
    replacements: dict[Value, Value] = {}
    first: dict[Hashable, Call] = {}
    kept: list[Call] = []

    for call in calls:
        inputs: list[Operand] = [_replace(operand, replacements) for operand in call.inputs]
        hashable = [tuple(operand) if isinstance(operand, list) else operand for operand in inputs]
        key = (call.plan, *hashable)
        earlier = first.get(key)
        if earlier is None:
            first[key] = call
            meant = call.dequantized and [_replace(x, replacements) for x in call.dequantized]
            kept.append(Call(call.plan, inputs, call.outputs, call.site, meant))
        else:
            replacements.update(zip(call.outputs, earlier.outputs, strict=True))
    return kept, [_replace(value, replacements) for value in results]


def _replace(operand: Any, replacements: Mapping[Value, Value]) -> Any:
    if isinstance(operand, list):
        return [_replace(member, replacements) for member in operand]
    return replacements.get(operand, operand) if isinstance(operand, Value) else operand


def eliminate_dead_calls(calls: Sequence[Call], results: Iterable[Wanted]) -> list[Call]:
    """Remove the calls on which ``results`` does not depend, and such outputs of loops."""
    needed: set[Wanted] = set(results)
    kept: list[Call] = []
    for call in reversed(calls):
        if not needed.isdisjoint(call.outputs):
            plan = call.plan
            live = plan.prune(call, needed) if isinstance(plan, NestedPlan) else call
            needed.update(live.operands())
            kept.append(live)
    kept.reverse()
    return kept


def select_used(
    before: Iterable[Value], calls: Sequence[Call], results: Iterable[Wanted]
) -> list[Value]:
    """Return the values of ``before`` that ``calls`` use or that are wanted."""
    used: set[Wanted] = set(results)
    for call in calls:
        used.update(call.operands())
    return [value for value in before if value in used]
