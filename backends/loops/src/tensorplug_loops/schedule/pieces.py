"""Groups cut along axes where a comparison of indices changes, so that no element compares.

What is joined becomes a copy of each part, what is padded a copy and constants around it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tensorplug.plugin import Expression, TensorType, groups
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.references import used
from tensorplug_loops.schedule.structures import axes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.plugin import Group, GroupInput, GroupOutput

_LEAST: Final = 1 << 12  # elements of a piece, on average
_MOST: Final = 64  # pieces along an axis
_COMPARED: Final = {"less": 0, "less_equal": -1}


T = TypeVar("T", "GroupInput", "GroupOutput")


class Sign(NamedTuple):
    """Whether ``step * index + constant`` along one axis is negative."""

    axis: int
    step: int
    constant: int

    @property
    def change(self) -> int:
        """The first index at which it is another than for those before."""
        if self.step > 0:
            return -(self.constant // self.step)
        return self.constant // -self.step + 1

    def over(self, low: int, high: int) -> bool | None:
        """Return it for indices from ``low`` up to ``high``, without it; None if they differ."""
        first, last = (self.step * at + self.constant < 0 for at in (low, high - 1))
        return first if first == last else None


def cut(group: Group, numbers: list[int]) -> list[tuple[Group, list[int]]]:
    """Return groups whose outputs together are those of a group with dense outputs.

    Beside each are the numbers of its inputs, which are ``numbers`` in the group. Outputs at an
    index have no initial value. A group that is too small stays as it is.
    """
    conditional = any(each.outside is not None for each in group.inputs)
    if conditional or axes_in(tuple(group.expressions())):
        return list(_pieces(group, numbers))
    return [(group, numbers)]


def _pieces(group: Group, numbers: list[int]) -> Iterator[tuple[Group, list[int]]]:
    signs = _Signs(len(group.shape))
    points = _points(group, signs)
    if not points:
        yield group, numbers
        return
    axis = min(points)
    ends = [0, *sorted(points[axis]), group.shape[axis]]
    if len(ends) > min(_MOST, prod(group.shape) // _LEAST):
        yield group, numbers
        return
    for low, high in pairwise(ends):
        part = _Part(group, signs, axis, low, high).group()
        part, kept = used(part)
        yield from _pieces(part, [numbers[k] for k in kept])


class _Signs:
    """The comparisons of expressions that depend on one index."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._known: dict[int, Sign | None] = {}

    def of(self, node: Expression) -> Sign | None:
        """Return what a comparison says of one axis; None if it is none, or of something else."""
        if node.op not in _COMPARED or node.operands[0].dtype is not dt.int64:
            return None
        if id(node) not in self._known:
            a, b = node.operands
            self._known[id(node)] = self.difference(a, b, _COMPARED[node.op])
        return self._known[id(node)]

    def difference(self, a: Expression, b: Expression, more: int) -> Sign | None:
        """Return whether ``a - b + more`` is negative."""
        first, second = (groups.affine(each, self._rank) for each in (a, b))
        if first.rest is not None or second.rest is not None:
            return None
        steps = [x - y for x, y in zip(first.steps, second.steps, strict=True)]
        axes = [axis for axis, step in enumerate(steps) if step]
        if len(axes) != 1:
            return None
        return Sign(axes[0], steps[axes[0]], first.constant - second.constant + more)

    def outside(self, operand: GroupInput) -> Iterator[tuple[Sign, Sign]]:
        """Give whether an input's indices are below 0, and whether they are below the length."""
        zero = ex.constant(0, dt.int64)
        if operand.outside is None or operand.index is None:
            return
        for index, length in zip(operand.index, operand.type.shape, strict=True):
            low = self.difference(index, zero, 0)
            if low is not None:
                yield low, low._replace(constant=low.constant - length)


def _points(group: Group, signs: _Signs) -> dict[int, list[int]]:
    """Return where comparisons change along each axis."""
    nodes = ex.order(group.expressions(), lambda _: False)
    found = [sign for node in nodes if (sign := signs.of(node)) is not None]
    found += [sign for each in group.inputs for both in signs.outside(each) for sign in both]
    points: dict[int, list[int]] = {}
    for sign in found:
        if 0 < sign.change < group.shape[sign.axis]:
            own = points.setdefault(sign.axis, [])
            if sign.change not in own:
                own.append(sign.change)
    return points


class _Part:
    """A group whose index along an axis runs from ``low`` up to ``high``, without it."""

    def __init__(self, group: Group, signs: _Signs, axis: int, low: int, high: int) -> None:
        self._group, self._signs, self._axis = group, signs, axis
        self._low, self._high = low, high
        self._made: dict[int, Expression] = {}

    def group(self) -> Group:
        """Return the group of this part."""
        shape = list(self._group.shape)
        shape[self._axis] = self._high - self._low
        return replace(
            self._group,
            shape=tuple(shape),
            inputs=tuple(map(self._placed, self._group.inputs)),
            outputs=tuple(
                replace(
                    self._placed(each),
                    expression=self._of(each.expression),
                    combine=None,
                    initial=None,
                )
                for each in self._group.outputs
            ),
        )

    def _placed(self, operand: T) -> T:
        """Return an operand at the indices of this part."""
        if operand.index is not None:
            return replace(operand, index=tuple(map(self._of, operand.index)))
        if not operand.spans[self._axis]:
            return operand
        along = [axis for axis, spanned in enumerate(operand.spans) if spanned]
        shape = tuple(self._group.shape[axis] for axis in along)
        index = tuple(self._of(ex.axis(axis)) for axis in along)
        return replace(operand, type=TensorType(operand.type.dtype, shape), index=index)

    def _of(self, root: Expression) -> Expression:
        """Return an expression where comparisons and choices are known."""
        known = self._made.get(id(root))
        if known is None:
            known = self._made[id(root)] = self._rewritten(root)
        return known

    def _rewritten(self, node: Expression) -> Expression:
        if node.op == "axis":
            own = node.value == self._axis and self._low
            return node + self._low if own else node
        if node.op == "parameter":
            return self._constant_outside(node)
        sign = self._signs.of(node)
        if sign is not None and sign.axis == self._axis:
            result = sign.over(self._low, self._high)
            if result is not None:
                return ex.constant(result, dt.bool_)
        if node.op == "where":
            condition = self._of(node.operands[0])
            if condition.op == "constant":
                return self._of(node.operands[1 if condition.value else 2])
        operands = tuple(map(self._of, node.operands))
        if node.op in {"logical_and", "logical_or"}:
            return _joined(node.op, *operands)
        if all(a is b for a, b in zip(operands, node.operands, strict=True)):
            return node
        return Expression(node.op, node.dtype, operands, node.value)

    def _constant_outside(self, node: Expression) -> Expression:
        """Return what an input is outside of its buffer, if it is there in all of this part."""
        number = int(node.value)  # type: ignore[arg-type]
        if number >= len(self._group.inputs):
            return node
        operand = self._group.inputs[number]
        for below, before_end in self._signs.outside(operand):
            if below.axis == self._axis and (
                below.over(self._low, self._high) is True
                or before_end.over(self._low, self._high) is False
            ):
                assert operand.outside is not None
                return ex.constant(operand.outside, operand.type.dtype)
        return node


def _joined(op: str, a: Expression, b: Expression) -> Expression:
    """Return both conditions, or either: true and x is x, true or x is true."""
    for one, other in ((a, b), (b, a)):
        if one.op == "constant":
            return other if bool(one.value) == (op == "logical_and") else one
    return ex.apply(op, a, b)
