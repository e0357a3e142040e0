"""How a kernel runs through loops: chosen from lengths and from the machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug_loops.schedule.lanes import choose_lanes, count_vectors, lies_near

if TYPE_CHECKING:
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule.loops import Loops

_SHORT: Final = 32  # elements along the last axis, few enough to reduce one after the other
_ROW: Final = 1 << 10  # elements in which an item takes several rows
_ITEMS: Final = 8  # that are enough
_FEW: Final = 16  # terms whose sum loses nothing by being added in order
_TAP: Final = 3  # length of axes that are unrolled, where there are several


@dataclass(frozen=True, slots=True)
class Form:
    """How a kernel runs through loops: with their structure, all that it depends on.

    ``segmented``: whether the last axis is a loop in each item, over a segment of ``size``
    elements, of which there are ``segments``. ``split``: whether an item takes a ``part`` of the
    first reduced axis, of which there are ``parts``, and the kernel writes what has accumulated.
    ``columns``: whether this is in memory meanwhile (``columns``).
    ``lanes``: of vectors. ``whole``: whether a segment is all of the axis. ``rows``: whether the
    axis before the last one is a loop in each item, too. ``vectors``: how many are reduced side by
    side. ``few``: whether so few terms are reduced that they are added in order. ``taps``: lengths
    of the reduced axes, if they are unrolled.
    """

    segmented: bool
    split: bool
    lanes: int = 1
    whole: bool = False
    rows: bool = False
    vectors: int = 1
    few: bool = False
    taps: tuple[int, ...] = ()
    columns: bool = False


def form_of(loops: Loops, machine: Machine, *, split: bool) -> Form:
    """Return the form of a kernel."""
    lengths = loops.lengths
    kept = [axis for axis, reduced in enumerate(loops.reduced) if not reduced]
    taps = tuple(lengths[axis] for axis, reduced in enumerate(loops.reduced) if reduced)
    last = len(lengths) - 1
    segmented = bool(kept) and not machine.neighbours
    if segmented and prod(lengths[kept[-1] + 1 :]) > _SHORT:
        segmented = lies_near(loops, kept[-1]) and not lies_near(loops, last)
    axis = kept[-1] if segmented else last
    lanes = choose_lanes(machine, loops, axis)
    few = prod(taps) <= _FEW and not split
    unrolled = few and len(taps) > 1 and max(taps) <= _TAP and not loops.running
    row = prod(taps) * lengths[axis] if segmented else 0
    return Form(
        segmented,
        split,
        lanes,
        rows=0 < row <= _ROW and not split and prod(lengths[at] for at in kept[:-2]) >= _ITEMS,
        vectors=count_vectors(machine, loops, axis, lanes) if segmented and taps else 1,
        few=few,
        taps=taps if unrolled else (),
    )
