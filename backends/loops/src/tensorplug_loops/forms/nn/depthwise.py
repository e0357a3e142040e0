"""Depthwise convolution and its transposes: each channel has filters of its own."""

from __future__ import annotations

from typing import Any

from tensorplug.algorithms import CONVOLUTION_DEPTHWISE, convolution_windows
from tensorplug.plugin import TensorType, expressions
from tensorplug_loops.forms.loops import Loops, both, quotient, rest
from tensorplug_loops.forms.nn.windows import over_taps, placed, position, source, taken
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

Attributes = dict[str, Any]


@forms.form(CONVOLUTION_DEPTHWISE.forward)
def forward(
    x: Operand, filter: Operand, *, attributes: Attributes, data_format: str, out: TensorType
) -> Form:
    """Loop over [*out, *taps]."""
    windows = convolution_windows(x.shape, filter.shape, attributes)
    loops = Loops((*out.shape, *filter.shape[:2]))
    taps = loops.axes[out.rank :]
    batch, positions, outer = taken(data_format, loops.axes)
    channel, number = quotient(outer, filter.shape[3]), rest(outer, filter.shape[3])
    index = [source(*each) for each in zip(positions, taps, windows, strict=True)]
    image = loops.read(x, *placed(data_format, batch, index, channel), outside=0)
    value = image * loops.read(filter, *taps, channel, number)
    return loops.write(out, over_taps(loops, "sum", value, out))


@forms.form(CONVOLUTION_DEPTHWISE.backprop_filter)
def backprop_filter(
    x: Operand, dy: Operand, *, attributes: Attributes, data_format: str, out: TensorType
) -> Form:
    """Loop over [*taps, channel, number, batch, *positions]."""
    windows = convolution_windows(x.shape, out.shape, attributes)
    loops = Loops((*out.shape, dy.shape[0], *(window.out for window in windows)))
    *taps, channel, number = loops.axes[:4]
    batch, *positions = loops.axes[4:]
    index = [source(*each) for each in zip(positions, taps, windows, strict=True)]
    image = loops.read(x, *placed(data_format, batch, index, channel), outside=0)
    outer = channel * out.shape[3] + number if out.shape[3] > 1 else channel
    value = image * loops.read(dy, *placed(data_format, batch, positions, outer))
    return loops.write(out, over_taps(loops, "sum", value, out))


@forms.form(CONVOLUTION_DEPTHWISE.backprop_input)
def backprop_input(
    dy: Operand, filter: Operand, *, attributes: Attributes, data_format: str, out: TensorType
) -> Form:
    """Loop over [*image, *taps, number]."""
    windows = convolution_windows(out.shape, filter.shape, attributes)
    loops = Loops((*out.shape, *filter.shape[:2], filter.shape[3]))
    *taps, number = loops.axes[out.rank :]
    batch, places, channel = taken(data_format, loops.axes)
    found = [position(*each) for each in zip(places, taps, windows, strict=True)]
    outer = channel * filter.shape[3] + number if filter.shape[3] > 1 else channel
    index = placed(data_format, batch, [at for at, _ in found], outer)
    value = loops.read(dy, *index, outside=0) * loops.read(filter, *taps, channel, number)
    zero = expressions.constant(0, out.dtype)
    value = expressions.where(both(*(exact for _, exact in found)), value, zero)
    return loops.write(out, over_taps(loops, "sum", value, out))
