"""Whether a reduction is taken in parts, which a second kernel combines, and how large they are.

Where items run one after the other, a row is taken in parts if it is long, or if there are so few
rows that cores would be idle, and so are columns, of which a part is some rows. Where neighbours
run side by side, there are as many parts as it takes to keep the device busy. So are scans: their
parts are reduced, the results scanned, and each part is scanned from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType, groups
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule import columns
from tensorplug_loops.schedule.accumulators import accumulated, identity
from tensorplug_loops.schedule.forms import choose_team
from tensorplug_loops.schedule.loops import reduced_axes
from tensorplug_loops.schedule.references import levels_of
from tensorplug_loops.schedule.structures import parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import DType
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.forms import Form
    from tensorplug_loops.schedule.loops import Loops

_PART: Final = 1 << 15  # elements that an item takes of what is reduced
_LONGEST: Final = 1 << 16  # elements that one item reduces
_FEW: Final = 4  # items that keep too few cores busy
_SMALL: Final = 1 << 17  # elements; fewer are not worth a second kernel
_SHORT: Final = 1 << 16  # elements; of more, few items take parts
_RESIDENT: Final = 2048  # work-items of a GPU's core
_EACH: Final = 8  # elements of a part for each work-item of a group
_MOST: Final = 1 << 11  # elements of a part, at most, for each work-item
_WIDE: Final = 1 << 8  # columns, of which strips are read row by row: few rows at a time
_BESIDE: Final = 16  # so many, which processors fetch ahead
_ALONE: Final = 64  # elements of a part for one that is alone


def is_split(group: Group, axes: Sequence[bool], machine: Machine) -> bool:
    """Return whether a reduction along these axes is to be taken in parts."""
    reduced = prod(n for n, is_reduced in zip(group.shape, axes, strict=True) if is_reduced)
    kept = prod(n for n, is_reduced in zip(group.shape, axes, strict=True) if not is_reduced)
    if not kept or not any(axes):
        return False
    if machine.neighbours:
        return _count(group.shape, axes, machine, runs=bool(group.folds)) > 1
    if has_columns(group, axes) and reduced >= columns.LEAST_ROWS and reduced * kept >= _SMALL:
        return True
    return reduced > _LONGEST or (kept < _FEW and reduced > _SHORT)


def has_columns(group: Group, axes: Sequence[bool]) -> bool:
    """Return whether what lies side by side is kept."""
    inner = 1
    for length, reduced in zip(reversed(group.shape), reversed(axes), strict=True):
        if reduced and length > 1:
            break
        inner *= length
    return inner >= columns.LEAST_COLUMNS and not group.folds


def takes_columns(loops: Loops, form: Form) -> bool:
    """Return whether what is reduced in parts lies side by side, along one axis."""
    group = loops.group
    own = form.segmented and form.strip is None and sum(loops.reduced) == 1
    return own and has_columns(group, reduced_axes(group))


def dtypes_of(group: Group, machine: Machine) -> list[DType]:
    """Return the dtypes of the parts of reductions and folds."""
    wide = machine.wide
    return [
        *(accumulated(each.op, each.expression.dtype, wide=wide) for each in group.reductions),
        *(root.dtype for fold in group.folds for root in fold.elements),
    ]


def choose_part(loops: Loops, axis: int, machine: Machine, *, alone: bool = False) -> int:
    """Return how much of an axis, the first that is reduced, a part has.

    ``alone``: for one work-item.
    """
    length = loops.lengths[axis]
    if machine.neighbours:
        runs = bool(loops.group.folds)
        count = _count(loops.lengths, loops.reduced, machine, runs=runs, alone=alone)
        return -(-length // (count * machine.strip)) * machine.strip
    reduced = prod(n for n, is_ in zip(loops.lengths, loops.reduced, strict=True) if is_)
    return max(1, min(length, _PART // (reduced // length)))


def is_scanned_in_parts(group: Group, machine: Machine) -> bool:
    """Return whether scans, whose outputs are dense, are taken in parts."""
    if not machine.neighbours or group.folds or len(levels_of(group)) > 1:
        return False
    return _count(group.shape, reduced_axes(group), machine, runs=False, alone=True) > 1


def _count(
    lengths: Sequence[int],
    axes: Sequence[bool],
    machine: Machine,
    *,
    runs: bool,
    alone: bool = False,
) -> int:
    """Return in how many parts each row is taken by neighbours."""
    members = 1 if alone else choose_team(lengths, axes, machine, runs=runs)[0]
    reduced = prod(n for n, is_reduced in zip(lengths, axes, strict=True) if is_reduced)
    units = members * prod(lengths) // max(1, reduced)
    idle = machine.cores * (machine.team or _RESIDENT) // max(1, units)
    idle = max(idle, reduced // (members * _MOST))
    if machine.strip > 1 and not axes[-1] and lengths[-1] >= _WIDE and prod(lengths) >= _SMALL:
        return max(1, reduced // _BESIDE)
    return max(1, min(idle, reduced // (_EACH * members if members > 1 else _ALONE)))


def shape_of(loops: Loops, count: int, *, across: bool) -> tuple[int, ...]:
    """Return the shape of an array of parts: ``across``: before the last axis that is kept."""
    outer = [loops.lengths[axis] for axis in loops.kept()]
    return (*outer[:-1], count, outer[-1]) if across else (*outer, count)


@dataclass(frozen=True, slots=True)
class Parts:
    """Arrays of parts: their dtypes, numbers and shape, and which axis of it counts the parts."""

    dtypes: Sequence[DType]
    numbers: tuple[int, ...]
    shape: tuple[int, ...]
    axis: int

    @property
    def _axes(self) -> tuple[bool, ...]:
        return tuple(at == self.axis for at in range(len(self.shape)))

    def combination(self, group: Group, types: Sequence[TensorType]) -> Group:
        """Return the group that combines the parts of reductions; ``types``: of the results."""
        axes, whole = self._axes, (True,) * len(self.shape)
        inputs = tuple(GroupInput(TensorType(dtype, self.shape), whole) for dtype in self.dtypes)
        reductions = tuple(
            Reduction(each.op, parameter(at, self.dtypes[at]), axes)
            for at, each in enumerate(group.reductions)
        )
        folds, at = [], len(reductions)
        for fold in group.folds:
            size = len(fold.elements)
            elements = tuple(parameter(at + k, self.dtypes[at + k]) for k in range(size))
            folds.append(groups.Fold(elements, fold.initial, fold.combine, axes))
            at += size
        outer = tuple(n for at, n in enumerate(self.shape) if at != self.axis)
        spans = tuple(not axis for axis in axes)
        outputs = tuple(
            GroupOutput(
                parameter(len(inputs) + at, self.dtypes[at], type_.dtype),
                TensorType(type_.dtype, outer),
                spans,
            )
            for at, type_ in enumerate(types)
        )
        name = f"{group.name}: parts"
        return Group(name, self.shape, inputs, reductions, outputs, tuple(folds))

    def sums_before(self, group: Group) -> Group:
        """Return the group that scans parts: what lies before each."""
        index = [ex.axis(at) - int(at == self.axis) for at in range(len(self.shape))]
        pairs = list(zip(group.reductions, self.dtypes, strict=True))
        types = [TensorType(dtype, self.shape) for dtype in self.dtypes]
        inputs = tuple(
            groups.mapped(type_, index, self.shape, outside=identity(each.op, type_.dtype))
            for (each, _), type_ in zip(pairs, types, strict=True)
        )
        reductions = tuple(
            Reduction(each.op, parameter(at, dtype), self._axes, running=True)
            for at, (each, dtype) in enumerate(pairs)
        )
        outputs = tuple(
            GroupOutput(parameter(len(inputs) + at, type_.dtype), type_, (True,) * len(index))
            for at, type_ in enumerate(types)
        )
        return Group(f"{group.name}: parts before", self.shape, inputs, reductions, outputs)
