"""Depthwise convolution and its transposes: each channel has filters of its own."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any, Final

from tensorplug.algorithms import CONVOLUTION_DEPTHWISE, channel_axis, convolution_windows
from tensorplug.plugin import TensorType, expressions
from tensorplug_loops.forms.loops import Loops, quotient, whole, widened
from tensorplug_loops.forms.nn.windows import (
    FEW,
    Prepare,
    beyond,
    covering,
    covers,
    over_taps,
    placed,
    source,
    taken,
    unfinished,
)
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

Attributes = dict[str, Any]
_MANY: Final = 8  # channels side by side


def convolve(
    x: Operand,
    filter: Operand,
    *,
    attributes: Attributes,
    data_format: str,
    out: TensorType,
    prepare: Prepare = unfinished,
) -> Form:
    """Loop over [*out, *taps]."""
    windows = convolution_windows(x.shape, filter.shape, attributes)
    loops = Loops((*out.shape, *filter.shape[:2]))
    taps = loops.axes[out.rank :]
    batch, positions, outer = taken(data_format, loops.axes)
    channel = quotient(outer, filter.shape[3])
    index = [source(*each) for each in zip(positions, taps, windows, strict=True)]
    image = loops.read(x, *placed(data_format, batch, index, channel), outside=0)
    *size, inner, number = filter.shape
    weight = loops.read(filter.reshaped((*size, inner * number)), *taps, outer)
    finish = prepare(loops)
    total = over_taps(loops, "sum", widened(image) * widened(weight), out)
    return loops.write(out, expressions.cast(finish(total), out.dtype))


@forms.form(CONVOLUTION_DEPTHWISE.forward)
def forward(
    x: Operand, filter: Operand, *, attributes: Attributes, data_format: str, out: TensorType
) -> Form:
    """Convolve."""
    return convolve(x, filter, attributes=attributes, data_format=data_format, out=out)


@forms.form(CONVOLUTION_DEPTHWISE.backprop_filter)
def backprop_filter(
    x: Operand, dy: Operand, *, attributes: Attributes, data_format: str, out: TensorType
) -> list[Form]:
    """Add up images first, over [batch, *filter, row, column], or rows of images."""
    windows = convolution_windows(x.shape, out.shape, attributes)
    count = out.shape[3]
    kept = 2 if channel_axis(data_format) == x.rank - 1 and out.shape[2] * count >= _MANY else 1
    lengths = [dy.shape[0], *(window.out for window in windows)]
    loops = Loops((*lengths[:kept], *out.shape, *lengths[kept:]))
    batch, *positions = [*loops.axes[:kept], *loops.axes[kept + 4 :]]
    *taps, channel, number = loops.axes[kept : kept + 4]
    outer = channel * count + number if count > 1 else channel
    index = [source(*each) for each in zip(positions, taps, windows, strict=True)]
    image = loops.read(x, *placed(data_format, batch, index, channel), outside=0)
    slope = loops.read(dy, *placed(data_format, batch, positions, outer))
    value = widened(image) * widened(slope)
    added = loops.reduce("sum", value, range(kept + 4, len(loops.shape)))
    parts = TensorType(out.dtype.compute, (*lengths[:kept], *out.shape))
    first = loops.write(parts, expressions.cast(added, parts.dtype))
    total = Loops(parts.shape)
    added = total.reduce("sum", total.read(Operand(parts, 2), *total.axes), range(kept))
    return [first, total.write(out, expressions.cast(added, out.dtype))]


@forms.form(CONVOLUTION_DEPTHWISE.backprop_input)
def backprop_input(
    dy: Operand, filter: Operand, *, attributes: Attributes, data_format: str, out: TensorType
) -> Form:
    """Loop over [*image, *windows over an element], and then over the outputs of a channel."""
    windows = convolution_windows(out.shape, filter.shape, attributes)
    count = filter.shape[3]
    more = () if count <= FEW else (count,)
    loops = Loops((*out.shape, *map(covers, windows), *more))
    numbers = loops.axes[out.rank + 2 :] or [whole(number) for number in range(count)]
    batch, places, channel = taken(data_format, loops.axes)
    found = [
        covering(*each)
        for each in zip(places, loops.axes[out.rank : out.rank + 2], windows, strict=True)
    ]
    positions, taps = zip(*found, strict=True)
    values = []
    for number in numbers:
        outer = channel * count + number if count > 1 else channel
        slope = loops.read(dy, *placed(data_format, batch, positions, outer), outside=0)
        weight = loops.read(filter, *taps, channel, number, outside=beyond(windows))
        values.append(widened(slope) * widened(weight))
    total = over_taps(loops, "sum", reduce(operator.add, values), out)
    return loops.write(out, expressions.cast(total, out.dtype))
