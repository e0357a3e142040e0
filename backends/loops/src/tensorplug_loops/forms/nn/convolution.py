"""Convolutions and their two transposes: sums of products over the taps of windows."""

from __future__ import annotations

from typing import Any

from tensorplug.algorithms import (
    CONVOLUTION_2D,
    CONVOLUTION_3D,
    ConvolutionFamily,
    convolution_windows,
    spatial_axes,
)
from tensorplug.plugin import Shape, TensorType, expressions
from tensorplug_loops.forms.loops import Loops, both
from tensorplug_loops.forms.nn.windows import (
    Prepare,
    over_taps,
    placed,
    position,
    source,
    taken,
    unfinished,
)
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

Attributes = dict[str, Any]


def convolve(
    x: Operand,
    filter: Operand,
    *,
    attributes: Attributes,
    data_format: str,
    out: TensorType,
    prepare: Prepare = unfinished,
) -> Form:
    """Loop over [*out, *taps, inner]."""
    windows = convolution_windows(x.shape, filter.shape, attributes)
    loops = Loops((*out.shape, *filter.shape[:-1]))
    *taps, inner = loops.axes[out.rank :]
    batch, positions, outer = taken(data_format, loops.axes)
    index = [source(*each) for each in zip(positions, taps, windows, strict=True)]
    image = loops.read(x, *placed(data_format, batch, index, inner), outside=0)
    value = image * loops.read(filter, *taps, inner, outer)
    finish = prepare(loops)
    return loops.write(out, finish(over_taps(loops, "sum", value, out)))


def _register_family(family: ConvolutionFamily) -> None:
    @forms.form(family.forward)
    def forward(
        x: Operand, filter: Operand, *, attributes: Attributes, data_format: str, out: TensorType
    ) -> Form:
        return convolve(x, filter, attributes=attributes, data_format=data_format, out=out)

    @forms.form(family.backprop_filter)
    def backprop_filter(
        x: Operand, dy: Operand, *, attributes: Attributes, data_format: str, out: TensorType
    ) -> Form:
        """Loop over [*taps, inner, outer, batch, *positions]."""
        windows = convolution_windows(x.shape, out.shape, attributes)
        sizes = (window.out for window in windows)
        loops = Loops((*out.shape, dy.shape[0], *sizes))
        *taps, inner, outer = loops.axes[: out.rank]
        batch, *positions = loops.axes[out.rank :]
        index = [source(*each) for each in zip(positions, taps, windows, strict=True)]
        image = loops.read(x, *placed(data_format, batch, index, inner), outside=0)
        value = image * loops.read(dy, *placed(data_format, batch, positions, outer))
        return loops.write(out, over_taps(loops, "sum", value, out))

    @forms.form(family.backprop_input)
    def backprop_input(
        dy: Operand, filter: Operand, *, attributes: Attributes, data_format: str, out: TensorType
    ) -> Form:
        """Loop over [*image, *taps, outer], where a tap may lie between positions."""
        windows = convolution_windows(out.shape, filter.shape, attributes)
        taps_shape: Shape = filter.shape[: len(spatial_axes(data_format))]
        loops = Loops((*out.shape, *taps_shape, filter.shape[-1]))
        *taps, outer = loops.axes[out.rank :]
        batch, places, inner = taken(data_format, loops.axes)
        found = [position(*each) for each in zip(places, taps, windows, strict=True)]
        index = placed(data_format, batch, [at for at, _ in found], outer)
        value = loops.read(dy, *index, outside=0) * loops.read(filter, *taps, inner, outer)
        zero = expressions.constant(0, out.dtype)
        value = expressions.where(both(*(exact for _, exact in found)), value, zero)
        return loops.write(out, over_taps(loops, "sum", value, out))


for _family in (CONVOLUTION_2D, CONVOLUTION_3D):
    _register_family(_family)
