"""Positions of sliding windows, and of the elements under them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.algorithms import channel_axis, spatial_axes
from tensorplug.plugin import Expression, Window, Windows, expressions
from tensorplug_loops.forms.loops import both, quotient, rest, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_loops.forms.loops import Loops


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


def is_inside(index: Sequence[Expression], windows: Windows) -> Expression:
    """Return whether elements do not lie on padding."""
    return both(
        *(at >= 0 for at in index),
        *(at < window.size for at, window in zip(index, windows, strict=True)),
    )


def count(at: Expression, window: Window) -> Expression | int:
    """Return how many taps of the window at a position do not lie on padding."""
    last = (window.out - 1) * window.stride + (window.filter - 1) * window.dilation
    if not window.before and last < window.size:
        return window.filter
    begin = at * window.stride - window.before
    skipped = expressions.apply("maximum", -quotient(begin, window.dilation), 0)
    ended = quotient(whole(window.size - 1) - begin, window.dilation)
    most = expressions.apply("minimum", ended, window.filter - 1)
    return expressions.apply("maximum", most - skipped + 1, 0)


def placed(
    data_format: str, batch: Expression, spatial: Sequence[Expression], channel: Expression
) -> list[Expression]:
    """Return the index of an element in this format."""
    index = [batch, *spatial]
    index.insert(channel_axis(data_format), channel)
    return index


def taken(
    data_format: str, axes: Sequence[Expression]
) -> tuple[Expression, list[Expression], Expression]:
    """Return batch, spatial axes and channel of an index in this format."""
    spatial = [axes[at] for at in spatial_axes(data_format)]
    return axes[0], spatial, axes[channel_axis(data_format)]
