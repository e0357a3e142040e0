"""How a kernel runs through loops: chosen from lengths and from the machine.

On a machine whose work-items are neighbours, a row of ``_TEAM`` elements and more is a
work-group's, whose work-items read neighbours. Rows side by side, and short ones, are a
work-item's each: then neighbours read from neighbouring rows.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug_loops.recording import plain
from tensorplug_loops.schedule.lanes import (
    choose_lanes,
    cost,
    count_near,
    count_vectors,
    crossed_inputs,
    dense_axis,
    lies_near,
)
from tensorplug_loops.schedule.strips import takes_strips
from tensorplug_loops.schedule.structures import axes_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops

_SHORT: Final = 32  # elements along the last axis, few enough to reduce one after the other
_FEW_APART: Final = 4  # likewise, if lanes read one by one
_ROW: Final = 1 << 10  # elements in which an item takes several rows
_ITEMS: Final = 8  # that are enough
_FEW: Final = 16  # terms whose sum loses nothing by being added in order
_BESIDE: Final = 8  # vectors side by side, at most
_TEAM: Final = 64  # elements of a row, for which a work-group is worth it
_MEMBERS: Final = 32  # work-items of a group that run at once on most GPUs
_EACH: Final = 8  # elements of a row for each of them
_SHORT_ROW: Final = 64  # likewise, for which few wait for one another, if there are rows enough
_ROWS: Final = 1 << 12  # that are enough
_EACH_OF_FEW: Final = 1 << 12  # likewise, where few are to share a row
_SIDE: Final = 8  # elements along an axis, below which tiles would be mostly empty
_STAGE: Final = 32 * 33 * 8  # bytes of a tile in the memory of a work-group, at most
_UNROLLED: Final = 4  # elements along the last axis that are no loop
_RANKS: Final = (0, 1, 2, 4, 8)  # for which elementwise kernels are written
_STRIPS: Final = 4  # of a row that is reduced, at least
_TAP: Final = 3  # length of axes that are unrolled, where there are several


class Form(NamedTuple):
    """How a kernel runs through loops: with their structure, all that it depends on.

    ``segmented``: whether the last axis is a loop in each item, over a segment of ``size``
    elements, of which there are ``segments``. ``split``: whether an item takes a ``part`` of the
    first reduced axis, of which there are ``parts``, and the kernel writes what has accumulated.
    ``columns``: whether this is in memory meanwhile (``columns``).
    ``lanes``: of vectors. ``whole``: whether a segment is all of the axis. ``rows``: whether the
    axis before the last one is a loop in each item, too. ``vectors``: how many are reduced side by
    side. ``short``: whether this is one, since there are no more or their order counts. ``few``:
    whether so few terms are reduced (by a lane) that they are added in order. ``block``: whether
    there are so few along the last reduced axis of several, and only sums along that are added in
    order. ``taps``: lengths of the reduced axes, if they are unrolled. ``members``: work-items of
    a work-group, which share the reduced axis with the number ``shared``; 1 if each item takes a
    row. ``across``: whether items that take parts of neighbouring rows are neighbours. ``tiled``:
    the two axes of tiles, if inputs are dense along the first one (``tiles``). ``tail``: the
    length of the last axis, if it is unrolled: the one before is taken for the last. ``strip``:
    the axis of which an item takes ``Machine.strip`` elements at once, if it does: a segment of
    the last one that is kept, or several of a row.
    """

    segmented: bool
    split: bool
    lanes: int = 1
    whole: bool = False
    rows: bool = False
    vectors: int = 1
    short: bool = False
    few: bool = False
    block: bool = False
    taps: tuple[int, ...] = ()
    columns: bool = False
    members: int = 1
    shared: int = 0
    across: bool = False
    tiled: tuple[int, int] | None = None
    tail: int = 0
    strip: int | None = None


def _find_tiled(loops: Loops, machine: Machine) -> tuple[int, int] | None:
    """Return the axis along which inputs are dense, and the last one, along which outputs are."""
    last, count = len(loops.lengths) - 1, len(loops.group.inputs)
    crossed = crossed_inputs(loops) if last > 0 else []
    most = machine.shared_bytes // _STAGE if machine.neighbours else len(crossed)
    written = {dense_axis(operand) for operand in loops.operands[count:]}
    if len(crossed) > most or written != {last}:
        return None
    for k in crossed:
        axis = dense_axis(loops.operands[k])
        assert axis is not None
        if min(loops.lengths[axis], loops.lengths[last]) >= _SIDE:
            return axis, last
    return None


def _find_tail(loops: Loops) -> int:
    """Return the length of the last axis, if it is so short that a loop takes longer; else 0."""
    lengths = loops.lengths
    little = cost(loops.roots) <= 2 * len(loops.operands)
    return plain(lengths[-1]) if len(lengths) > 1 and lengths[-1] <= _UNROLLED and little else 0


def form_of(loops: Loops, machine: Machine, *, split: bool, alone: bool = False) -> Form:
    """Return the form of a kernel; ``alone``: without work-groups."""
    elements = not loops.group.reductions and not loops.group.folds
    tiled = _find_tiled(loops, machine) if elements else None
    if tiled is not None:
        return Form(segmented=False, split=False, tiled=tiled)
    lengths = loops.lengths
    kept = loops.kept()
    taps = tuple(lengths[axis] for axis, reduced in enumerate(loops.reduced) if reduced)
    last = len(lengths) - 1
    tail = _find_tail(loops) if elements and not machine.neighbours else 0
    if tail:
        del kept[-1]
    segmented = bool(kept) and not machine.neighbours
    near = bool(kept) and lies_near(loops, kept[-1])
    short = _SHORT if machine.masked or not machine.vector_bytes or near else _FEW_APART
    if segmented and not tail and prod(lengths[kept[-1] + 1 :]) > short:
        segmented = count_near(loops, kept[-1]) > count_near(loops, last)
    axis = kept[-1] if segmented else last
    lanes = choose_lanes(machine, loops, axis)
    terms = prod(taps)
    if lanes > 1 and not segmented and not machine.wide:  # each lane adds up its own
        terms = terms // taps[-1] * -(-taps[-1] // lanes) if taps else 0
    few = terms <= _FEW and not split
    unrolled = (
        prod(taps) <= _FEW
        and not split
        and len(taps) > 1
        and max(taps) <= _TAP
        and not loops.running
    )
    members, shared = 1, 0
    if not loops.running and not alone:
        runs = bool(loops.group.folds)
        members, shared = choose_team(lengths, loops.reduced, machine, runs=runs)
    row = prod(taps) * lengths[axis] * max(1, tail) if segmented else 0
    # Factors that are taken apart may overflow where those before each element do not.
    ordered = alone and any(each.op == "prod" for each in loops.group.reductions)
    strip = None if ordered else _find_strip(loops, machine, members, taps, shared)
    if strip is not None:
        segmented, lanes = not loops.reduced[strip], machine.strip
    return Form(
        segmented,
        split,
        lanes,
        rows=0 < row <= _ROW and not split and prod(lengths[at] for at in kept[:-2]) >= _ITEMS,
        vectors=count_vectors(machine, loops, axis, lanes) if segmented and taps else 1,
        short=ordered
        or (
            lengths[last:] <= [_FEW]
            if segmented
            else not machine.masked and lengths[last:] < [_BESIDE * lanes]
        ),
        few=few,
        block=len(taps) > 1 and taps[-1] <= _FEW,
        taps=tuple(map(plain, taps)) if unrolled and members == 1 else (),
        members=members,
        shared=shared,
        tail=tail,
        across=split and members == 1 and not segmented and bool(kept) and kept[-1] == last,
        strip=strip,
    )


def _find_strip(
    loops: Loops, machine: Machine, members: int, taps: Sequence[int], shared: int
) -> int | None:
    """Return the axis of which an item takes several elements at once: the last one, or none."""
    last = len(loops.lengths) - 1
    if machine.strip == 1 or last < 0:
        return None
    if loops.reduced[last]:
        few = bool(loops.group.folds) or loops.running or taps[-1] < _STRIPS * machine.strip
        if few or (members > 1 and shared != len(taps) - 1):
            return None
    elif members > 1:
        return None
    return last if takes_strips(loops, last, machine) else None


def generalize(loops: Loops, form: Form, machine: Machine) -> None:
    """Make loops for which there would be several kernels one.

    Along the axes of items, strides of 0 and 1 are numbers, too: one multiplies an index by them.
    So are the numbers of these axes: one of length 1 costs a division in an item.
    """
    if form.tiled is not None or any(loops.reduced):
        return
    rank = len(loops.lengths)
    if not machine.neighbours and not axes_in(tuple(loops.everything())):
        loops.widen(min((each for each in _RANKS if each >= rank), default=rank))
    loops.numbered = frozenset(range(len(loops.lengths) - 1 - bool(form.tail)))


def choose_team(
    lengths: Sequence[int], axes: Sequence[bool], machine: Machine, *, runs: bool
) -> tuple[int, int]:
    """Return how many work-items share a row, and which of its reduced axes.

    ``runs``: each takes a run of elements, because their order counts.
    """
    least = min(_MEMBERS, machine.team or machine.group_size)
    reduced = [length for length, is_reduced in zip(lengths, axes, strict=True) if is_reduced]
    side = 1
    for length, is_reduced in zip(reversed(lengths), reversed(axes), strict=True):
        if is_reduced:
            break
        side *= length
    if not machine.neighbours or not reduced or side >= least:
        return 1, 0
    axis = 0 if runs else len(reduced) - 1
    if reduced[axis] < least and not runs:
        axis = max(range(len(reduced)), key=reduced.__getitem__)
    if reduced[axis] < min(_TEAM, 2 * least):
        return 1, 0
    rows = prod([n for n, is_reduced in zip(lengths, axes, strict=True) if not is_reduced])
    if machine.team and reduced[axis] <= _SHORT_ROW * machine.team and rows >= _ROWS:
        return 1, 0
    if machine.team and axis == 0:  # of which parts are taken, where it is long
        return least, axis
    each = _EACH_OF_FEW if machine.team else _EACH
    wanted = 1 << max(reduced[axis] // each - 1, 0).bit_length()
    return plain(min(machine.group_size, max(least, wanted))), axis
