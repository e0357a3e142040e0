"""Forming groups: from loops over the axes of tensors to those that a backend compiles."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from tensorplug.contract.expressions import linearize, parameter, substitute
from tensorplug.contract.groups import Group, GroupInput, GroupOutput, Reduction

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from tensorplug.compile.fusion.loops import Loops, Source
    from tensorplug.compile.tracing.values import Value
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expressions import Expression
    from tensorplug.contract.shapes import Shape


class Formed(NamedTuple):
    """A group, and where its inputs come from.

    ``axes``: for each axis of the group, those of the loops that it consists of.
    """

    group: Group
    sources: list[Source]
    axes: list[list[int]]


def form_group(
    loops: Loops, outputs: Sequence[Value], name: str, known: dict[Hashable, Expression]
) -> Formed:
    """Return the group that computes ``outputs``, over as few axes as possible.

    ``known``: expressions of other groups. Groups that differ in nothing become equal by it.

    Axes of length 1 are left out, and neighbouring axes that nothing tells apart become one.
    """
    elements = [loops.elements[value] for value in outputs]
    roots = [element.expression for element in elements]
    reductions = _needed(loops, roots)
    reduced = [loops.reductions[number] for number in reductions]
    # In one list, since reductions and outputs share operations, and number inputs alike.
    roots = [reduction.expression for reduction in reduced] + roots
    inputs = [number for number in _parameters(roots) if number in loops.leaves.sources]
    sources = [loops.leaves.sources[number] for number in inputs]
    operations = {
        number: parameter(at, _dtype(loops, number))
        for at, number in enumerate([*inputs, *reductions])
    }
    roots = substitute(roots, operations, known)  # type: ignore[arg-type]  # looked up by number
    own, results = roots[: len(reduced)], roots[len(reduced) :]
    spanned: list[Collection[int]] = [axes for _, axes in sources]
    spanned += [reduction.axes for reduction in reduced]
    spanned += [element.axes for element in elements]
    runs = _collapse(loops, spanned)
    axes = [[first, *rest] for first, rest in runs]

    def spans(axes: Collection[int]) -> tuple[bool, ...]:
        return tuple(first in axes for first, _ in runs)

    return Formed(
        Group(
            name,
            joined(loops.shape, axes),
            tuple(GroupInput(source.placement.type, spans(axes)) for source, axes in sources),
            tuple(
                Reduction(reduction.op, root, spans(reduction.axes))
                for reduction, root in zip(reduced, own, strict=True)
            ),
            tuple(
                GroupOutput(root, value.placement.type, spans(element.axes))
                for root, value, element in zip(results, outputs, elements, strict=True)
            ),
        ),
        [source for source, _ in sources],
        axes,
    )


def joined(shape: Shape, axes: Sequence[Sequence[int]]) -> Shape:
    """Return a shape with the product of several sizes for each of the axes."""
    return tuple(prod([shape[axis] for axis in run]) for run in axes)


def _dtype(loops: Loops, number: int) -> DType:
    source = loops.leaves.sources.get(number)
    if source is None:
        return loops.reductions[number].expression.dtype
    return source[0].placement.type.dtype


def _parameters(roots: Sequence[Expression]) -> list[int]:
    """Return the numbers of the parameters, in the order in which they occur."""
    return list(
        dict.fromkeys(
            int(operation.value)  # type: ignore[arg-type]  # a number
            for operation in linearize(roots)
            if operation.op == "parameter"
        )
    )


def _needed(loops: Loops, roots: Sequence[Expression]) -> list[int]:
    """Return the numbers of the reductions on which the roots depend, in order."""
    needed = set(_parameters(roots))
    # From the last one: a reduction depends on earlier ones only.
    for number in reversed(loops.reductions):
        if number in needed:
            needed.update(_parameters([loops.reductions[number].expression]))
    return [number for number in loops.reductions if number in needed]


def _collapse(loops: Loops, spanned: Sequence[Collection[int]]) -> list[tuple[int, list[int]]]:
    """Return runs of axes that can become one: the first, and the others."""
    runs: list[tuple[int, list[int]]] = []
    for axis, size in enumerate(loops.shape):
        if size == 1:
            continue
        # Memory is contiguous: two axes that each operand has, or lacks, are one axis to it.
        if runs and all((axis in axes) == (runs[-1][0] in axes) for axes in spanned):
            runs[-1][1].append(axis)
        else:
            runs.append((axis, []))
    return runs
