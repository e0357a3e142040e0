"""Which inputs and results the expressions of a group refer to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tensorplug.plugin import Expression
from tensorplug.plugin import expressions as ex

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Group


def levels_of(group: Group) -> list[list[int]]:
    """Return reductions and folds by level, numbered one after the other.

    Each needs only results of levels before its own.
    """
    inputs, whose = len(group.inputs), result_owners(group)
    levels: list[int] = []
    for roots in results_roots(group):
        used = [
            levels[whose[int(node.value) - inputs]]  # type: ignore[arg-type]  # a number
            for node in ex.order(roots, lambda _: False)
            if node.op == "parameter" and int(node.value) >= inputs  # type: ignore[arg-type]
        ]
        levels.append(1 + max(used, default=-1))
    return [
        [number for number, level in enumerate(levels) if level == which]
        for which in range(max(levels, default=-1) + 1)
    ]


def results_roots(group: Group) -> list[tuple[Expression, ...]]:
    """Return the expressions of each reduction and fold."""
    return [
        *((each.expression,) for each in group.reductions),
        *(fold.elements for fold in group.folds),
    ]


def result_owners(group: Group) -> list[int]:
    """Return for each result, as parameters number them, the reduction or fold that has it."""
    return [at for at, roots in enumerate(results_roots(group)) for _ in roots]


def result_dtypes(group: Group) -> list[DType]:
    """Return the dtype of each result."""
    return [root.dtype for roots in results_roots(group) for root in roots]


def renumbered(root: Expression, new: dict[int, int]) -> Expression:
    """Return an expression with other numbers of parameters."""
    made: dict[int, Expression] = {}
    for node in ex.order([root], lambda _: False):
        operands = tuple(made[id(each)] for each in node.operands)
        value = node.value
        if node.op == "parameter":
            value = new.get(int(value), int(value))  # type: ignore[arg-type]  # a number
        made[id(node)] = Expression(node.op, node.dtype, operands, value)
    return made[id(root)]


def used(group: Group) -> tuple[Group, list[int]]:
    """Return a group without the inputs that it does not read, and the numbers of the others."""
    roots = group.expressions()
    indices = [len(each.index or ()) for each in group.inputs]
    own = len(roots) - sum(indices) - sum(len(each.index or ()) for each in group.outputs)
    parts, at = [], own
    for count in indices:
        parts.append(roots[at : at + count])
        at += count
    read: set[int] = set()
    pending = [*roots[:own], *roots[at:]]
    while pending:
        found = {
            int(node.value)  # type: ignore[arg-type]  # a number
            for node in ex.order(pending, lambda _: False)
            if node.op == "parameter"
        }
        pending = [root for k in found - read if k < len(parts) for root in parts[k]]
        read |= found
    kept = [k for k in range(len(group.inputs)) if k in read]
    if len(kept) == len(group.inputs):
        return group, kept
    first = len(group.inputs)
    new = {k: at for at, k in enumerate(kept)}
    new |= {p: p - first + len(kept) for p in read if p >= first}
    smaller = group.rewritten([renumbered(root, new) for root in roots])
    return replace(smaller, inputs=tuple(smaller.inputs[k] for k in kept)), kept


def needs_none(group: Group, j: int) -> bool:
    """Return whether a dense output refers to no result."""
    output, first = group.outputs[j], len(group.inputs)
    nodes = ex.order([output.expression], lambda _: False)
    numbers = [node.value for node in nodes if node.op == "parameter"]
    return output.index is None and all(int(number) < first for number in numbers)  # type: ignore[arg-type]
