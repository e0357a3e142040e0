"""Expressions without elementary functions: arithmetic in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.algorithms import elementary
from tensorplug.plugin import Expression, expressions

if TYPE_CHECKING:
    from collections.abc import Sequence


def lower(roots: Sequence[Expression]) -> list[Expression]:
    """Return expressions of equal value of operations alone, with equal ones as one object.

    Casts to the own dtype go: each operation is rounded by itself.
    """
    roots = _expand(expressions.unify(roots))
    while any(node.op in expressions.FUNCTIONS for node in expressions.linearize(roots)):
        roots = _expand(expressions.unify(roots))
    return expressions.unify(roots)


def _expand(roots: Sequence[Expression]) -> list[Expression]:
    new: dict[int, Expression] = {}
    for node in expressions.linearize(roots):
        operands = tuple(new[id(operand)] for operand in node.operands)
        if node.op == "cast" and operands[0].dtype is node.dtype:
            new[id(node)] = operands[0]
            continue
        made = Expression(node.op, node.dtype, operands, node.value)
        new[id(node)] = elementary.expand(made) if node.op in expressions.FUNCTIONS else made
    return [new[id(root)] for root in roots]
