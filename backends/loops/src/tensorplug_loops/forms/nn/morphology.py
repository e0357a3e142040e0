"""Dilation: the largest sum of an element and its tap in each window, and where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import dilation_windows, lowest
from tensorplug.plugin import Expression, Shape, TensorType, Windows, expressions, specs
from tensorplug_loops.forms.extremes import first_largest
from tensorplug_loops.forms.loops import Loops, flat, unravel
from tensorplug_loops.forms.nn.windows import is_inside, source
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Sequence

forms = FormTable()

Attributes = dict[str, Any]


def _sums(
    x: Operand, filter: Operand, windows: Windows, dy: Operand | None = None
) -> tuple[Loops, Expression, list[Expression], Expression, Expression | None]:
    """Return loops over [*out, *taps], the sum at each tap, its element, if it is one, and dy."""
    shape = (x.shape[0], *(window.out for window in windows), x.shape[3])
    loops = Loops((*shape, *filter.shape[:2]))
    taps = loops.axes[4:]
    index = [source(*each) for each in zip(loops.axes[1:3], taps, windows, strict=True)]
    value = loops.read(x, loops.axes[0], *index, loops.axes[3], outside=0)
    value = value + loops.read(filter, *taps, loops.axes[3])
    gradient = None if dy is None else loops.read(dy, *loops.axes[:4])
    return loops, value, index, is_inside(index, windows), gradient


@forms.form(specs.DILATION2D)
def dilation2d(x: Operand, filter: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Return the largest sum."""
    windows = dilation_windows(x.shape, filter.shape, attributes)
    loops, value, _, inside, _ = _sums(x, filter, windows)
    value = expressions.where(inside, value, lowest(out.dtype))
    return loops.write(out, loops.reduce("max", value, (4, 5)))


def _give(
    x: Operand, filter: Operand, dy: Operand, attributes: Attributes, out: TensorType
) -> Form:
    """Add dy up at the winner, among the elements of x or the taps of the filter."""
    windows = dilation_windows(x.shape, filter.shape, attributes)
    loops, value, index, inside, gradient = _sums(x, filter, windows, dy)
    of_filter = out.rank == 3
    sizes: Shape = filter.shape[:2] if of_filter else x.shape[1:3]
    at: Sequence[Expression] = loops.axes[4:] if of_filter else index
    place = expressions.where(inside, flat(at, sizes), -1)
    _, winner = first_largest(loops, value, place, (4, 5))
    batch, channel = loops.axes[0], loops.axes[3]
    target = [*([] if of_filter else [batch]), *unravel(winner, sizes), channel]
    assert gradient is not None
    return loops.write_at(out, target, gradient, "sum", 0)


@forms.form(specs.DILATION2D_BACKPROP_INPUT)
def backprop_input(
    x: Operand, filter: Operand, dy: Operand, *, attributes: Attributes, out: TensorType
) -> Form:
    """Give dy to the winners among the elements."""
    return _give(x, filter, dy, attributes, out)


@forms.form(specs.DILATION2D_BACKPROP_FILTER)
def backprop_filter(
    x: Operand, filter: Operand, dy: Operand, *, attributes: Attributes, out: TensorType
) -> Form:
    """Give dy to the winners among the taps."""
    return _give(x, filter, dy, attributes, out)
