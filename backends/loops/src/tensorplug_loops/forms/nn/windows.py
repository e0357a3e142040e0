"""Positions of sliding windows, and of the elements under them."""

from __future__ import annotations

import operator
from functools import reduce
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from tensorplug.algorithms import channel_axis, spatial_axes
from tensorplug.plugin import Expression, TensorType, Window, Windows, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.extremes import first_largest
from tensorplug_loops.forms.loops import Loops, both, clamped, flat, quotient, rest, whole
from tensorplug_loops.forms.table import Operand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_loops.forms.table import Form

T = TypeVar("T")

Prepare: TypeAlias = "Callable[[Loops], Callable[[Expression], Expression]]"
"""Reads what an output needs beside a sum, and returns a function of the sum."""

FEW: Final = 4  # terms, whose sum is as exact in their own dtype


def unfinished(_loops: Loops) -> Callable[[Expression], Expression]:
    """Return what leaves a sum as it is."""
    return lambda total: total


def over_taps(loops: Loops, op: str, value: Expression, out: TensorType) -> Expression:
    """Return a reduction along the axes that follow those of the result."""
    return loops.reduce(op, value, range(out.rank, len(loops.shape)))


def source(at: Expression, tap: Expression, window: Window) -> Expression:
    """Return the element under a tap of the window at a position; it may lie on padding."""
    first = at if window.stride == 1 else at * window.stride
    along = tap if window.dilation == 1 else tap * window.dilation
    return first + along - window.before if window.before else first + along


def position(at: Expression, tap: Expression, window: Window) -> tuple[Expression, Expression]:
    """Return the position at which a tap of the window lies on an element, and whether any is."""
    along = at + window.before - tap * window.dilation
    place = quotient(along, window.stride)
    exact = expressions.apply("equal", rest(along, window.stride), 0)
    return place, both(exact, place >= 0, place < window.out)


def covers(window: Window) -> int:
    """Return how many windows lie over an element along an axis, at most."""
    return -(-window.filter // _apart(window))


def _apart(window: Window) -> int:
    """Return how far the taps lie apart at which windows lie over one element."""
    return 1 if window.dilation > 1 else window.stride


def covering(at: Expression, number: Expression, window: Window) -> tuple[Expression, Expression]:
    """Return the position of one of these windows, which may not exist, and its tap there."""
    along = at + window.before if window.before else at
    if window.stride == 1:
        return along - (number * window.dilation if window.dilation > 1 else number), number
    if window.dilation > 1:
        place, exists = position(at, number, window)
        return expressions.where(exists, place, -1), number
    place = quotient(along, window.stride) - number
    tap = rest(along, window.stride) + number * window.stride
    if window.filter % window.stride:
        place = expressions.where(tap < window.filter, place, -1)
    return place, tap


def beyond(windows: Windows) -> int | None:
    """Return 0 if some windows that are counted over an element are not there; else None.

    Then their taps may lie behind the last ones.
    """
    exact = all(not window.filter % _apart(window) for window in windows)
    return None if exact else 0


def over_element(
    windows: Windows, data_format: str, out: TensorType
) -> tuple[Loops, list[tuple[list[Expression], list[Expression]]]]:
    """Return loops over elements, and for each window over one its index and the element's tap.

    If there are many, axes that follow those of the elements number some of them.
    """
    counts = [covers(window) for window in windows]
    looped = next(at for at in range(len(counts) + 1) if prod(counts[at:]) <= FEW)
    loops = Loops((*out.shape, *counts[:looped]))
    batch, places, channel = taken(data_format, loops.axes)
    made = []
    for few in product(*(map(whole, range(count)) for count in counts[looped:])):
        numbers = [*loops.axes[out.rank :], *few]
        found = [covering(*each) for each in zip(places, numbers, windows, strict=True)]
        positions, taps = map(list, zip(*found, strict=True))
        made.append((placed(data_format, batch, positions, channel), taps))
    return loops, made


def added(loops: Loops, values: Sequence[Expression], out: TensorType) -> Expression:
    """Return the sum of what there is for each window over an element."""
    value = reduce(operator.add, values)
    return over_taps(loops, "sum", value, out) if len(loops.shape) > out.rank else value


def first_in(
    loops: Loops,
    value: Expression,
    windows: Windows,
    positions: Sequence[Expression],
    number: Callable[[Sequence[Expression]], Expression],
) -> list[Expression]:
    """Return the first largest element of each window, and the number of its taps.

    On padding alone, these are the dtype's lowest and -1. ``value``: the lowest on padding.
    """
    axes = range(len(loops.shape) - len(windows), len(loops.shape))
    taps = loops.axes[axes.start :]
    best, at = first_largest(loops, value, _numbered(taps, windows, positions, number), axes)
    starts = [_skipped(*each) for each in zip(positions, windows, strict=True)]
    first = expressions.cast(_numbered(starts, windows, positions, number), at.dtype)
    return [best, expressions.where(at < 0, first, at)]  # nothing is larger than the lowest


def _numbered(
    taps: Sequence[Expression],
    windows: Windows,
    positions: Sequence[Expression],
    number: Callable[[Sequence[Expression]], Expression],
) -> Expression:
    """Return the number of taps, -1 on padding."""
    found = list(zip(positions, taps, windows, strict=True))
    conditions = [
        condition
        for at, tap, window in found
        if window.before or _end(window) > window.size
        for place in [source(at, tap, window)]
        for condition in (place >= 0, place < window.size, tap < window.filter)
    ]
    made = number(taps)
    return expressions.where(both(*conditions), made, -1) if conditions else made


def find_winners(
    loops: Loops,
    value: Expression,
    windows: Windows,
    positions: Sequence[Expression],
    like: Operand,
) -> tuple[Form, Operand]:
    """Return the form of the first largest tap of each window, -1 for none, and its output.

    ``like``: whose shape and number the output has.
    """
    filters = [window.filter for window in windows]
    _, winner = first_in(loops, value, windows, positions, lambda taps: flat(taps, filters))
    type_ = TensorType(dt.int32, like.shape)
    return loops.write(type_, expressions.cast(winner, dt.int32)), Operand(type_, like.number)


def collect(
    dy: Operand, winners: Operand, windows: Windows, data_format: str, out: TensorType
) -> Form:
    """Add up, for each element, dy of the windows that it won."""
    loops, found = over_element(windows, data_format, out)
    filters, wide = [window.filter for window in windows], out.dtype.compute
    strided, values = all(window.stride > 1 for window in windows), []
    for index, taps in found:
        winner = loops.read(winners, *index, outside=-1)
        if strided:  # then clamping keeps nothing from being read side by side
            batch, spatial, channel = taken(data_format, index)
            lengths = taken(data_format, dy.shape)[1]
            near = [clamped(at, length) for at, length in zip(spatial, lengths, strict=True)]
            slope = loops.read(dy, *placed(data_format, batch, near, channel))
        else:
            slope = loops.read(dy, *index, outside=0)
        slope = expressions.cast(slope, wide)
        tap = expressions.cast(flat(taps, filters), dt.int32)
        won = expressions.apply("equal", winner, tap)
        values.append(expressions.where(won, slope, expressions.constant(0, wide)))
    return loops.write(out, expressions.cast(added(loops, values, out), out.dtype))


def is_inside(index: Sequence[Expression], windows: Windows) -> Expression:
    """Return whether elements do not lie on padding."""
    conditions = [expressions.constant(1, dt.bool_)]
    for at, window in zip(index, windows, strict=True):
        if window.before:
            conditions.append(at >= 0)
        if _end(window) > window.size:
            conditions.append(at < window.size)
    return both(*conditions[len(conditions) > 1 :])


def _end(window: Window) -> int:
    """Return how far the last window reaches."""
    last = (window.out - 1) * window.stride + (window.filter - 1) * window.dilation
    return last + 1 - window.before


def count(at: Expression, window: Window) -> Expression | int:
    """Return how many taps of the window at a position do not lie on padding."""
    if not window.before and _end(window) <= window.size:
        return window.filter
    begin = at * window.stride - window.before
    ended = quotient(whole(window.size - 1) - begin, window.dilation)
    most = expressions.apply("minimum", ended, window.filter - 1)
    return expressions.apply("maximum", most - _skipped(at, window) + 1, 0)


def _skipped(at: Expression, window: Window) -> Expression:
    """Return how many taps of the window at a position lie on padding before the elements."""
    if not window.before:
        return whole(0)
    begin = at * window.stride - window.before
    return expressions.apply("maximum", -quotient(begin, window.dilation), 0)


def placed(data_format: str, batch: T, spatial: Sequence[T], channel: T) -> list[T]:
    """Return the index of an element in this format."""
    index = [batch, *spatial]
    index.insert(channel_axis(data_format), channel)
    return index


def taken(data_format: str, axes: Sequence[T]) -> tuple[T, list[T], T]:
    """Return batch, spatial axes and channel of an index in this format."""
    spatial = [axes[at] for at in spatial_axes(data_format)]
    return axes[0], spatial, axes[channel_axis(data_format)]
