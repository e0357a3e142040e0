"""Which inputs and results the expressions of a group refer to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tensorplug.plugin import groups
from tensorplug_loops.schedule.structures import parameters_in, renumbered

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Expression, Group


def levels_of(group: Group) -> list[list[int]]:
    """Return reductions and folds by level, numbered one after the other.

    Each needs only results of levels before its own.
    """
    inputs, whose = len(group.inputs), result_owners(group)
    levels: list[int] = []
    for roots in results_roots(group):
        used = [
            levels[whose[number - inputs]] for number in parameters_in(roots) if number >= inputs
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


def used(group: Group) -> tuple[Group, list[int]]:
    """Return a group without the inputs that it does not read, and the numbers of the others."""
    roots = group.expressions()
    everything = list(range(len(group.inputs)))
    if parameters_in(tuple(roots)).issuperset(everything):
        return group, everything
    indices = [len(each.index or ()) for each in group.inputs]
    own = len(roots) - sum(indices) - sum(len(each.index or ()) for each in group.outputs)
    parts, at = [], own
    for count in indices:
        parts.append(roots[at : at + count])
        at += count
    read: frozenset[int] = frozenset()
    pending = (*roots[:own], *roots[at:])
    while pending:
        found = parameters_in(pending)
        pending = tuple(root for k in sorted(found - read) if k < len(parts) for root in parts[k])
        read |= found
    kept = [k for k in everything if k in read]
    first = len(group.inputs)
    new = {k: at for at, k in enumerate(kept)}
    new |= {p: p - first + len(kept) for p in read if p >= first}
    smaller = group.rewritten(renumbered(tuple(roots), tuple(sorted(new.items()))))
    return replace(smaller, inputs=tuple(smaller.inputs[k] for k in kept)), kept


def is_dense(group: Group, j: int) -> bool:
    """Return whether an output's elements are written once each: its index reorders axes.

    Without a way to combine, the index is that of a part, or the author says that none meet.
    """
    output = group.outputs[j]
    if output.index is None or output.combine is None:
        return True
    if output.combine != "last" or not all(output.spans):
        return False
    free = [axis for axis, length in enumerate(group.shape) if length > 1]
    for index, length in zip(output.index, output.type.shape, strict=True):
        at = groups.affine(index, len(group.shape))
        along = [axis for axis in free if at.steps[axis]]
        if at.rest is not None or len(along) > 1:
            return False
        step = at.steps[along[0]] if along else 1
        own = group.shape[along[0]] if along else 1
        if own != length or (step, at.constant) not in ((1, 0), (-1, length - 1)):
            return False
        free = [axis for axis in free if axis not in along]
    return not free


def needs_none(group: Group, j: int) -> bool:
    """Return whether a dense output refers to no result."""
    output, first = group.outputs[j], len(group.inputs)
    numbers = parameters_in((output.expression,))
    return output.index is None and all(number < first for number in numbers)


def results_written(group: Group, kept: groups.Span) -> dict[int, int]:
    """Return by result an output that is nothing but this result; ``kept``: its axes."""
    first, found = len(group.inputs), {}
    for j, output in enumerate(group.outputs):
        value = output.expression
        if value.op == "parameter" and output.index is None and output.spans == kept:
            found[int(value.value) - first] = j  # type: ignore[arg-type]  # a number
    return {at: j for at, j in found.items() if at >= 0}
