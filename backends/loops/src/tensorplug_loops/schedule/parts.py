"""Whether a reduction is taken in parts, which a second kernel combines, and how large they are.

Where items run one after the other, a row is taken in parts if it is long, or if there are so few
rows that cores would be idle, and so are columns, of which a part is some rows. Where neighbours
run side by side, there are as many parts as it takes to keep the device busy.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug_loops.schedule import columns
from tensorplug_loops.schedule.forms import choose_team

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Group
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops

_PART: Final = 1 << 15  # elements that an item takes of what is reduced
_LONGEST: Final = 1 << 16  # elements that one item reduces
_FEW: Final = 4  # items that keep too few cores busy
_SMALL: Final = 1 << 17  # elements; fewer are not worth a second kernel
_SHORT: Final = 1 << 16  # elements; of more, few items take parts
_RESIDENT: Final = 2048  # work-items of a GPU's core
_EACH: Final = 8  # elements of a part for each work-item of a group
_MOST: Final = 1 << 11  # elements of a part, at most, for each work-item
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


def choose_part(loops: Loops, axis: int, machine: Machine) -> int:
    """Return how much of an axis, the first that is reduced, a part has."""
    length = loops.lengths[axis]
    if machine.neighbours:
        runs = bool(loops.group.folds)
        return -(-length // _count(loops.lengths, loops.reduced, machine, runs=runs))
    reduced = prod(n for n, is_ in zip(loops.lengths, loops.reduced, strict=True) if is_)
    return max(1, min(length, _PART // (reduced // length)))


def _count(lengths: Sequence[int], axes: Sequence[bool], machine: Machine, *, runs: bool) -> int:
    """Return in how many parts each row is taken by neighbours."""
    members, _ = choose_team(lengths, axes, machine, runs=runs)
    reduced = prod(n for n, is_reduced in zip(lengths, axes, strict=True) if is_reduced)
    units = members * prod(lengths) // max(1, reduced)
    idle = machine.cores * _RESIDENT // max(1, units)
    idle = max(idle, reduced // (members * _MOST))
    return max(1, min(idle, reduced // (_EACH * members if members > 1 else _ALONE)))
