"""The loops of a group: which axes remain, and where each operand's elements lie along them.

Lengths, strides and whole numbers in expressions become numbers of the kernel. ``Loops.key`` says
all that the kernel depends on: of a stride, whether it is 0, 1 or another number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression, groups
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.schedule.structures import axes_in, structure_of, written

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.plugin import DType, Group, GroupInput, GroupOutput, Scalar

_OTHER: Final = 2  # the kind of a stride that is neither 0 nor 1


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
    are no int64, whose values are their bits. ``numbered``: the axes along which all strides are
    numbers of the kernel, 0 and 1 as well.
    """

    def __init__(self, group: Group, over: Sequence[bool] | None = None) -> None:
        self.group = group
        self.values: dict[str, int] = {}
        self.signs: dict[str, int] = {}
        self.kinds: dict[str, DType] = {}
        self.running = is_running(group)
        self.numbered: frozenset[int] = frozenset()
        given = reduced_axes(group)
        count = (
            len(group.reductions)
            + len(group.outputs)
            + sum(len(fold.elements) for fold in group.folds)
        )
        operands: list[GroupInput | GroupOutput] = [*group.inputs, *group.outputs]
        self.operands = [self._operand(each) for each in operands]
        self._linears = [each.linears() for each in self.operands]
        self._by_rests = [at for own in self._linears for at in own if at.rests]
        self.roots = group.expressions()[:count]
        roots = tuple(self.everything())
        merged = self._merge(self.operands, axes_in(roots), given, over)
        axes = tuple([axis for axis, _, _ in merged])
        self.lengths = [length for _, length, _ in merged]
        self.reduced = [reduced for _, _, reduced in merged]
        for own in self._linears:
            for at in own:
                at.steps = [at.steps[axis] for axis in axes]
        structure = structure_of(roots, axes)
        self.lowered(structure.roots)
        for number, (value, dtype, is_index) in enumerate(structure.constants):
            name = f"q{number}"
            self.values[name] = value
            self.signs[name] = 1 if value > 0 and is_index else -1
            if dtype is not dt.int64:
                self.kinds[name] = dtype
        for axis, length in enumerate(self.lengths):
            self.values[f"n{axis}"] = length
        self._structure = structure.number

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
            if outside is not None or getattr(operand, "combine", None) is not None:
                check = Check(own, length)
                check.holds = self._holds(check, shape)
                if outside is None or not check.holds:
                    checks.append(check)
            size *= length
        return Operand(type_.dtype, offset, checks, outside)

    def _merge(
        self,
        operands: list[Operand],
        opaque: frozenset[int],
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

    @staticmethod
    def _holds(check: Check, lengths: Sequence[int]) -> bool:
        ends = [
            sorted((0, step * (length - 1)))
            for step, length in zip(check.at.steps, lengths, strict=True)
        ]
        low = check.at.constant + sum(end[0] for end in ends)
        high = check.at.constant + sum(end[1] for end in ends)
        return not check.at.rests and low >= 0 and high < check.limit

    def kept(self) -> list[int]:
        """Return the axes that are not reduced."""
        return [axis for axis, reduced in enumerate(self.reduced) if not reduced]

    def widen(self, rank: int) -> None:
        """Add axes of length 1 before the others, on which no expression may depend."""
        more = rank - len(self.lengths)
        self.lengths[:0] = [1] * more
        self.reduced[:0] = [False] * more
        for own in self._linears:
            for at in own:
                at.steps[:0] = [0] * more
        for axis, length in enumerate(self.lengths):
            self.values[f"n{axis}"] = length

    def lowered(self, new: Sequence[Expression]) -> None:
        """Take other expressions for ``everything()``."""
        self.roots = list(new[: len(self.roots)])
        rest = iter(new[len(self.roots) :])
        for at in self._by_rests:
            at.rests = [(step, next(rest)) for step, _ in at.rests]

    def everything(self) -> list[Expression]:
        """Return the roots, and what is computed of indices."""
        return [*self.roots, *[rest for at in self._by_rests for _, rest in at.rests]]

    def value(self, name: str) -> int:
        """Return the value of a number of the kernel."""
        if name in self.values:
            return self.values[name]
        kind, (k, *rest) = _taken_apart(name)
        operand = self.operands[k]
        if kind == "z":
            return self.group.inputs[k].type.size
        j, *rest = rest
        if kind == "l":
            return operand.checks[j].limit
        at = self._linears[k][j]
        if kind == "o":
            return at.constant
        return at.steps[rest[0]] if kind == "s" else at.rests[rest[0]][0]

    def key(self) -> Hashable:
        """Return all that a kernel depends on, but for its form."""
        group, numbered = self.group, self.numbered
        passes = [reduced_axes(group), *(output.spans for output in group.outputs)]
        return (
            len(group.inputs),
            tuple(self.reduced),
            tuple(
                (
                    operand.dtype,
                    repr(operand.outside),
                    tuple([check.holds for check in operand.checks]),
                    *[
                        (
                            at.constant != 0,
                            *[
                                _OTHER if axis in numbered else _kind(step)
                                for axis, step in enumerate(at.steps)
                            ],
                            *[_kind(step) for step, _ in at.rests],
                        )
                        for at in linears
                    ],
                )
                for operand, linears in zip(self.operands, self._linears, strict=True)
            ),
            tuple((each.op, each.running) for each in group.reductions),
            tuple((written((*fold.initial, *fold.combine)), fold.running) for fold in group.folds),
            tuple(output.combine for output in group.outputs),
            tuple(passes) if any(self.reduced) else (),
            numbered,
            self._structure,
        )


def _kind(step: int) -> int:
    return 0 if step == 0 else 1 if step == 1 else _OTHER


@lru_cache(1 << 12)
def _taken_apart(name: str) -> tuple[str, list[int]]:
    """Return the letter of a number's name, and what it counts."""
    return name[0], [int(part) for part in name[1:].split("_")]
