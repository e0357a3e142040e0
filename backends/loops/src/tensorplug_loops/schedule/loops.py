"""The loops of a group: which axes remain, and where each operand's elements lie along them.

Lengths, strides and whole numbers in expressions become numbers of the kernel. ``Loops.key`` says
all that the kernel depends on: of a stride, whether it is 0, 1 or another number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import Expression, expressions, groups
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.statements import variable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.plugin import DType, Group, GroupInput, GroupOutput, Scalar

_KEPT: Final = {-1, 0, 1}  # these stay in the kernel
_FLOATS_KEPT: Final = {0.5, 2.0, float("inf"), float("-inf")}
# The dtypes of other constants, whose bits are numbers of the kernel.
_BITS: Final = {
    dt.int64: dt.int64,
    dt.uint64: dt.int64,
    dt.float32: dt.int32,
    dt.float64: dt.int64,
}


@dataclass(slots=True)
class Linear:
    """A whole number: ``constant``, ``steps`` along the axes, and multiples of expressions."""

    constant: int
    steps: list[int]
    rests: list[tuple[int, Expression]]


@dataclass(slots=True)
class Check:
    """``at`` must be at least 0 and less than ``limit``. ``holds``: by these lengths, it is."""

    at: Linear
    limit: int
    holds: bool = False


@dataclass(slots=True)
class Operand:
    """An input or output: its elements' offsets, and where they lie outside of the buffer."""

    dtype: DType
    offset: Linear
    checks: list[Check]
    outside: Scalar | None = None

    def linears(self) -> list[Linear]:
        """Return all that is computed of indices."""
        return [self.offset, *(check.at for check in self.checks)]


def reduced_axes(group: Group) -> groups.Span:
    """Return which axes are reduced, or scanned."""
    if group.reductions:
        return group.reductions[0].axes
    return group.folds[0].axes if group.folds else (False,) * len(group.shape)


def is_running(group: Group) -> bool:
    """Return whether reductions are scans."""
    return any(each.running for each in group.reductions) or any(
        fold.running for fold in group.folds
    )


class Loops:
    """A group's loops.

    Attributes: ``lengths`` and ``reduced`` of the axes that remain: those of length 1, and
    those that ``over`` leaves out, are not among them, and neighbours that all operands treat
    alike are one. ``operands``: the inputs, then the outputs. ``roots``: the group's
    expressions but for indices, of these axes and of numbers. ``values``: of the numbers, by
    name; ``signs``: of those that are constants. ``kinds``: the dtypes of those that
    are no int64, whose values are their bits.
    """

    def __init__(self, group: Group, over: Sequence[bool] | None = None) -> None:
        self.group = group
        self.values: dict[str, int] = {}
        self.signs: dict[str, int] = {}
        self.kinds: dict[str, DType] = {}
        self.running = is_running(group)
        given = reduced_axes(group)
        count = (
            len(group.reductions)
            + len(group.outputs)
            + sum(len(fold.elements) for fold in group.folds)
        )
        operands: list[GroupInput | GroupOutput] = [*group.inputs, *group.outputs]
        linears = [self._operand(each) for each in operands]
        self.roots = group.expressions()[:count]
        rests = [rest for each in linears for at in each.linears() for _, rest in at.rests]
        nodes = expressions.linearize([*self.roots, *rests])
        opaque = {int(node.value) for node in nodes if node.op == "axis"}  # type: ignore[arg-type]
        merged = self._merge(linears, opaque, given, over)
        self.lengths = [length for _, length, _ in merged]
        self.reduced = [reduced for _, _, reduced in merged]
        numbers = {axis: position for position, (axis, _, _) in enumerate(merged)}
        for each in linears:
            for at in each.linears():
                at.steps = [at.steps[axis] for axis, _, _ in merged]
            for check in each.checks:
                check.holds = self._holds(check)
        self.operands = linears
        self._rewrite(rests, numbers)
        for axis, length in enumerate(self.lengths):
            self.values[f"n{axis}"] = length
        self.key = self._key()

    def _operand(self, operand: GroupInput | GroupOutput) -> Operand:
        shape, type_ = self.group.shape, operand.type
        if operand.index is None:
            steps, size = [0] * len(shape), 1
            for axis in reversed(range(len(shape))):
                if operand.spans[axis]:
                    steps[axis], size = size, size * shape[axis]
            return Operand(type_.dtype, Linear(0, steps, []), [])
        offset = Linear(0, [0] * len(shape), [])
        checks, size = [], 1
        outside = getattr(operand, "outside", None)
        for index, length in zip(reversed(operand.index), reversed(type_.shape), strict=True):
            found = groups.affine(index, len(shape))
            rests = [] if found.rest is None else [(1, found.rest)]
            own = Linear(found.constant, list(found.steps), rests)
            offset.constant += size * own.constant
            offset.steps = [a + size * b for a, b in zip(offset.steps, own.steps, strict=True)]
            offset.rests += [(size, rest) for _, rest in rests]
            if outside is not None or isinstance(operand, groups.GroupOutput):
                checks.append(Check(own, length))
            size *= length
        return Operand(type_.dtype, offset, checks, outside)

    def _merge(
        self,
        operands: list[Operand],
        opaque: set[int],
        reduced: Sequence[bool],
        over: Sequence[bool] | None,
    ) -> list[tuple[int, int, bool]]:
        """Return the axes that remain: the last of those merged, the length, whether reduced."""
        shape = self.group.shape
        merged: list[tuple[int, int, bool]] = []
        offsets = [each.offset for each in operands]
        checks = [check.at for each in operands for check in each.checks]
        for axis in reversed(range(len(shape))):
            if shape[axis] == 1 or not (over is None or over[axis]):
                continue
            if merged:
                inner, length, kind = merged[-1]
                alike = (
                    kind == reduced[axis]
                    and not {axis, inner} & opaque
                    and all(at.steps[axis] == at.steps[inner] * length for at in offsets)
                    and not any(at.steps[axis] or at.steps[inner] for at in checks)
                )
                if alike:
                    merged[-1] = inner, length * shape[axis], kind
                    continue
            merged.append((axis, shape[axis], reduced[axis]))
        return merged[::-1]

    def _rewrite(self, rests: Sequence[Expression], numbers: dict[int, int]) -> None:
        """Number the axes anew, and make numbers of constants."""
        new: dict[int, Expression] = {}
        roots = expressions.unify([*self.roots, *rests])
        for node in expressions.linearize(roots):
            if node.op == "axis":
                axis = numbers.get(int(node.value))  # type: ignore[arg-type]  # a number
                new[id(node)] = (
                    expressions.constant(0, dt.int64) if axis is None else expressions.axis(axis)
                )
            elif node.op == "constant":
                new[id(node)] = self._constant(node)
            else:
                operands = tuple(new[id(each)] for each in node.operands)
                new[id(node)] = Expression(node.op, node.dtype, operands, node.value)
        made = expressions.unify([new[id(root)] for root in roots])
        self.roots = made[: len(self.roots)]
        rest = iter(made[len(self.roots) :])
        for each in self.operands:
            for at in each.linears():
                at.rests = [(step, next(rest)) for step, _ in at.rests]

    def _constant(self, node: Expression) -> Expression:
        """Return a number of the kernel for a constant that differs from call to call."""
        is_kept = node.dtype in dt.FLOATING and node.value in _FLOATS_KEPT
        if node.dtype not in _BITS or node.value in _KEPT or is_kept:
            return node
        name = f"q{len(self.signs)}"
        with np.errstate(over="ignore", invalid="ignore"):
            own = np.array(node.value).astype(node.dtype.numpy)
        bits = _BITS[node.dtype]
        value = int(own.view(bits.numpy))
        self.values[name] = value
        self.signs[name] = 1 if value > 0 and node.dtype is dt.int64 else -1
        if node.dtype is dt.int64:
            return variable(name)
        if bits is dt.int64:  # no index
            self.kinds[name] = dt.uint64
            return expressions.bitcast(variable(name, dt.uint64), node.dtype)
        return expressions.bitcast(expressions.cast(variable(name), bits), node.dtype)

    def _holds(self, check: Check) -> bool:
        ends = [
            sorted((0, step * (length - 1)))
            for step, length in zip(check.at.steps, self.lengths, strict=True)
        ]
        low = check.at.constant + sum(end[0] for end in ends)
        high = check.at.constant + sum(end[1] for end in ends)
        return not check.at.rests and low >= 0 and high < check.limit

    def lowered(self, new: Sequence[Expression]) -> None:
        """Take lowered expressions for ``everything()``."""
        self.roots = list(new[: len(self.roots)])
        rest = iter(new[len(self.roots) :])
        for each in self.operands:
            for at in each.linears():
                at.rests = [(step, next(rest)) for step, _ in at.rests]

    def everything(self) -> list[Expression]:
        """Return the roots, and what is computed of indices."""
        rests = [rest for each in self.operands for at in each.linears() for _, rest in at.rests]
        return [*self.roots, *rests]

    def _key(self) -> Hashable:
        group = self.group
        roots = self.everything()
        nodes = expressions.linearize(roots)
        number = {id(node): at for at, node in enumerate(nodes)}
        for k, operand in enumerate(self.operands):
            for j, at in enumerate(operand.linears()):
                self.values[f"o{k}_{j}"] = at.constant
                for axis, step in enumerate(at.steps):
                    self.values[f"s{k}_{j}_{axis}"] = step
                for i, (step, _) in enumerate(at.rests):
                    self.values[f"r{k}_{j}_{i}"] = step
            for j, check in enumerate(operand.checks):
                self.values[f"l{k}_{j}"] = check.limit
        return (
            len(group.inputs),
            tuple(self.reduced),
            tuple(
                (
                    operand.dtype,
                    repr(operand.outside),
                    tuple(check.holds for check in operand.checks),
                    *(
                        (
                            _kind(at.constant),
                            *(_kind(step) for step in at.steps),
                            *(_kind(step) for step, _ in at.rests),
                        )
                        for at in operand.linears()
                    ),
                )
                for operand in self.operands
            ),
            tuple((each.op, each.running) for each in group.reductions),
            tuple(
                (*map(str, (*fold.initial, *fold.combine)), fold.running) for fold in group.folds
            ),
            tuple(output.combine for output in group.outputs),
            tuple(self.signs.items()),
            tuple(number[id(root)] for root in roots),
            tuple(
                (
                    node.op,
                    node.dtype,
                    repr(node.value),
                    *(number[id(operand)] for operand in node.operands),
                )
                for node in nodes
            ),
        )


def _kind(step: int) -> int:
    return step if step in {0, 1} else 2
