"""What is taken out of a program before it runs, and how one is cut in two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.compile.tracing import Call, Constant, Value

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from tensorplug.compile.tracing import Operand

__all__ = ["crossing", "without_common", "without_dead"]

Wanted = Value | Constant


def without_common(
    calls: Sequence[Call], wanted: Sequence[Wanted]
) -> tuple[list[Call], list[Wanted]]:
    """Return the program with each computation done once, and what its wanted values are then.

    Kernels are functions: the same plan with the same inputs gives the same.
    """
    same: dict[Value, Value] = {}
    first: dict[Hashable, Call] = {}
    kept: list[Call] = []

    def now(operand: Any) -> Any:
        if isinstance(operand, list):
            return [now(item) for item in operand]
        return same.get(operand, operand) if isinstance(operand, Value) else operand

    for call in calls:
        inputs: list[Operand] = [now(item) for item in call.inputs]
        key = (call.plan, *[tuple(item) if isinstance(item, list) else item for item in inputs])
        earlier = first.get(key)
        if earlier is None:
            first[key] = call
            kept.append(Call(call.plan, inputs, call.outputs, call.site))
        else:
            same.update(zip(call.outputs, earlier.outputs, strict=True))
    return kept, [now(item) for item in wanted]


def without_dead(calls: Sequence[Call], wanted: Iterable[Wanted]) -> list[Call]:
    """Return those of the calls on which ``wanted`` depends."""
    needed: set[Wanted] = set(wanted)
    kept: list[Call] = []
    for call in reversed(calls):
        if not needed.isdisjoint(call.outputs):
            needed.update(call.operands())
            kept.append(call)
    kept.reverse()
    return kept


def crossing(
    before: Iterable[Value], calls: Sequence[Call], wanted: Iterable[Wanted]
) -> list[Value]:
    """Return which of the values ``before`` are used by ``calls`` or wanted themselves."""
    used: set[Wanted] = set(wanted)
    for call in calls:
        used.update(call.operands())
    return [item for item in before if item in used]
