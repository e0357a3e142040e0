"""Dilation: the largest sum of an element and its tap in each window, and where it is."""

from __future__ import annotations

from typing import Any

from tensorplug.algorithms import dilation_windows, lowest
from tensorplug.plugin import Expression, TensorType, Windows, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, flat
from tensorplug_loops.forms.nn.windows import collect, find_winners, is_inside, source
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

Attributes = dict[str, Any]


def _sums(x: Operand, filter: Operand, windows: Windows) -> tuple[Loops, Expression]:
    """Return loops over [*out, *taps], and the sum at each tap, the lowest on padding."""
    shape = (x.shape[0], *(window.out for window in windows), x.shape[3])
    loops = Loops((*shape, *filter.shape[:2]))
    taps = loops.axes[4:]
    index = [source(*each) for each in zip(loops.axes[1:3], taps, windows, strict=True)]
    value = loops.read(x, loops.axes[0], *index, loops.axes[3], outside=0)
    value = value + loops.read(filter, *taps, loops.axes[3])
    value = expressions.where(is_inside(index, windows), value, lowest(value.dtype))
    return loops, value


@forms.form(specs.DILATION2D)
def dilation2d(x: Operand, filter: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Return the largest sum."""
    windows = dilation_windows(x.shape, filter.shape, attributes)
    loops, value = _sums(x, filter, windows)
    return loops.write(out, loops.reduce("max", value, (4, 5)))


def _winners(x: Operand, filter: Operand, dy: Operand, windows: Windows) -> tuple[Form, Operand]:
    loops, value = _sums(x, filter, windows)
    return find_winners(loops, value, windows, loops.axes[1:3], Operand(dy.type, 3))


@forms.form(specs.DILATION2D_BACKPROP_INPUT)
def backprop_input(
    x: Operand, filter: Operand, dy: Operand, *, attributes: Attributes, out: TensorType
) -> list[Form]:
    """Add up, for each element, dy of the windows that it won."""
    windows = dilation_windows(x.shape, filter.shape, attributes)
    found, winners = _winners(x, filter, dy, windows)
    return [found, collect(dy, winners, windows, "NHWC", out)]


@forms.form(specs.DILATION2D_BACKPROP_FILTER)
def backprop_filter(
    x: Operand, filter: Operand, dy: Operand, *, attributes: Attributes, out: TensorType
) -> list[Form]:
    """Add up, for each tap, dy of the windows that it won."""
    windows = dilation_windows(x.shape, filter.shape, attributes)
    found, winners = _winners(x, filter, dy, windows)
    loops = Loops((*out.shape, *dy.shape[:3]))
    row, column, channel, *position = loops.axes
    winner, slope = (loops.read(each, *position, channel) for each in (winners, dy))
    tap = expressions.cast(flat([row, column], out.shape[:2]), dt.int32)
    won = expressions.apply("equal", winner, tap)
    value = expressions.where(won, slope, expressions.constant(0, out.dtype))
    return [found, loops.write(out, loops.reduce("sum", value, (3, 4, 5)))]
