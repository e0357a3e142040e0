"""The order of a group's axes: reduced ones come first, where neighbours lie along another.

So rows are added up as they lie in memory, by vectors or by neighbours. A matrix that a vector is
multiplied by is the usual case: the group has the reduced axis last, whatever the matrix has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tensorplug.plugin import Expression, TensorType, groups
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.loops import is_running
from tensorplug_loops.statements import rewritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Group, GroupInput


def in_order(group: Group, axes: Sequence[bool]) -> Group:
    """Return the group with another order of its axes, or itself; ``axes``: those reduced."""
    long = [axis for axis, length in enumerate(group.shape) if length > 1]
    if not long or not axes[long[-1]] or group.folds or is_running(group):
        return group
    kept = tuple(not reduced for reduced in axes)
    if any(output.index is not None or output.spans != kept for output in group.outputs):
        return group
    largest = max(group.inputs, key=lambda each: each.type.size, default=None)
    dense = None if largest is None else _dense_axis(largest, long)
    if dense is None or axes[dense]:
        return group
    rank = len(group.shape)
    order = sorted(range(rank), key=lambda axis: not axes[axis])
    new = {axis: at for at, axis in enumerate(order)}

    def moved(spans: Sequence[bool]) -> tuple[bool, ...]:
        return tuple(spans[axis] for axis in order)

    shape = tuple(group.shape[axis] for axis in order)
    inputs = []
    for each in group.inputs:
        spanned = [axis for axis in range(rank) if each.spans[axis]]
        ordered = sorted(spanned, key=new.__getitem__) == spanned
        type_, index = each.type, each.index
        if index is None and not ordered:
            type_ = TensorType(type_.dtype, tuple(group.shape[axis] for axis in spanned))
            index = tuple(map(ex.axis, spanned))
        inputs.append(replace(each, type=type_, index=index, spans=moved(each.spans)))
    whole = replace(
        group,
        shape=shape,
        inputs=tuple(inputs),
        reductions=tuple(replace(each, axes=moved(each.axes)) for each in group.reductions),
        outputs=tuple(replace(each, spans=moved(each.spans)) for each in group.outputs),
    )
    return whole.rewritten(_renamed(whole.expressions(), new))


def _dense_axis(operand: GroupInput, long: Sequence[int]) -> int | None:
    """Return the axis along which an input's elements are neighbours."""
    if operand.index is None:
        return max((axis for axis in long if operand.spans[axis]), default=None)
    at = groups.affine(operand.index[-1], len(operand.spans)) if operand.index else None
    return next((axis for axis in long if at and at.steps[axis] == 1), None)


def _renamed(roots: Sequence[Expression], new: dict[int, int]) -> tuple[Expression, ...]:
    """Return expressions of axes with other numbers."""

    def rule(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        if node.op == "axis":
            return ex.axis(new[int(node.value)])  # type: ignore[arg-type]  # a number
        return Expression(node.op, node.dtype, operands, node.value)

    return tuple(rewritten(roots, rule))
