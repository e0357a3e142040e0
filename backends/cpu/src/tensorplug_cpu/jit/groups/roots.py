"""What is found of a group's expressions once: groups of other sizes have the same objects."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions
from tensorplug_cpu.jit.codegen.lowering import lower
from tensorplug_cpu.jit.groups.evaluation import cost, number_of
from tensorplug_cpu.jit.groups.threads import MOST_MODULES

if TYPE_CHECKING:
    from tensorplug.plugin import Expression


@lru_cache(MOST_MODULES)
def lowered(roots: tuple[Expression, ...]) -> tuple[Expression, ...] | None:
    """Return expressions of operations that LLVM has; None if it lacks one of the dtypes."""
    if any(node.dtype not in dt.REAL | dt.BOOL for node in expressions.linearize(roots)):
        return None
    return tuple(lower(roots))


@lru_cache(MOST_MODULES)
def cost_of(roots: tuple[Expression, ...]) -> int:
    """Return about how many instructions compute a vector of elements."""
    return cost(roots)


@lru_cache(MOST_MODULES)
def find_levels(reduced: tuple[Expression, ...], inputs: int) -> tuple[tuple[int, ...], ...]:
    """Return the reductions by level: each needs only results of levels before its own.

    ``inputs``: the number of inputs, whose parameters come before those of the results.
    """
    levels: list[int] = []
    for root in reduced:
        used = [
            levels[number_of(node) - inputs]
            for node in expressions.order([root], lambda _: False)
            if node.op == "parameter" and number_of(node) >= inputs
        ]
        levels.append(1 + max(used, default=-1))
    return tuple(
        tuple([number for number, level in enumerate(levels) if level == which])
        for which in range(max(levels, default=-1) + 1)
    )


@lru_cache(MOST_MODULES)
def renumber(roots: tuple[Expression, ...]) -> tuple[list[int], tuple[Expression, ...]]:
    """Return the numbers of the parameters in use, and the roots with these counted from 0."""
    used = {
        number_of(node): node.dtype
        for node in expressions.linearize(roots)
        if node.op == "parameter"
    }
    numbers = sorted(used)
    new = {number: expressions.parameter(at, used[number]) for at, number in enumerate(numbers)}
    unused = expressions.constant(0, dt.float32)
    values = [new.get(number, unused) for number in range(max(numbers, default=-1) + 1)]
    return numbers, tuple(expressions.substitute(roots, values))
