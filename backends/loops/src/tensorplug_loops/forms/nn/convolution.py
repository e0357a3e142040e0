"""Convolutions and their two transposes: sums of products over the taps of windows."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import (
    CONVOLUTION_2D,
    CONVOLUTION_3D,
    ConvolutionFamily,
    convolution_windows,
    spatial_axes,
)
from tensorplug.plugin import Expression, TensorType, Window, Windows, expressions
from tensorplug_loops.forms.loops import Loops, widened
from tensorplug_loops.forms.nn.windows import (
    Prepare,
    covering,
    over_taps,
    placed,
    source,
    taken,
    unfinished,
)
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    value = widened(image) * widened(loops.read(filter, *taps, inner, outer))
    finish = prepare(loops)
    total = finish(over_taps(loops, "sum", value, out))
    return loops.write(out, expressions.cast(total, out.dtype))


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
        slope = loops.read(dy, *placed(data_format, batch, positions, outer))
        value = widened(image) * widened(slope)
        total = over_taps(loops, "sum", value, out)
        return loops.write(out, expressions.cast(total, out.dtype))

    @forms.form(family.backprop_input)
    def backprop_input(
        dy: Operand, filter: Operand, *, attributes: Attributes, data_format: str, out: TensorType
    ) -> list[Form]:
        """Take one product for each phase of the strides: there, windows lie over the same taps.

        What lies before the first whole stride, and behind the image, is computed, too.
        """
        windows = convolution_windows(out.shape, filter.shape, attributes)
        spatial = spatial_axes(data_format)
        lengths = list(out.shape)
        for axis, window in zip(spatial, windows, strict=True):
            lengths[axis] = _places(window)
        made: list[Form] = []
        parts: list[Operand | None] = []
        for phases in product(*(range(_phases(window)) for window in windows)):
            taps = [_taps(*each) for each in zip(phases, windows, strict=True)]
            if 0 in taps:
                parts.append(None)
                continue
            loops = Loops((*lengths, *taps, filter.shape[-1]))
            *counts, outer = loops.axes[out.rank :]
            batch, places, inner = taken(data_format, loops.axes)
            each = zip(places, phases, counts, windows, strict=True)
            positions, at = zip(*[_covering(*own) for own in each], strict=True)
            value = loops.read(dy, *placed(data_format, batch, positions, outer), outside=0)
            value = widened(value) * widened(loops.read(filter, *at, inner, outer))
            type_ = TensorType(out.dtype, tuple(lengths))
            parts.append(Operand(type_, 2 + len(made)))
            total = over_taps(loops, "sum", value, out)
            made.append(loops.write(type_, expressions.cast(total, out.dtype)))
        if len(parts) > 1:
            made += _joined(parts, windows, data_format, out)
        return made


def _phases(window: Window) -> int:
    """Return how many phases elements along an axis have; dilated windows are not split."""
    return 1 if window.dilation > 1 else window.stride


def _places(window: Window) -> int:
    """Return how many elements an axis has in each phase, from the whole stride before on."""
    stride = _phases(window)
    return -(-(window.before % stride + window.size) // stride)


def _taps(phase: int, window: Window) -> int:
    """Return how many windows lie over an element in a phase."""
    return -(-max(0, window.filter - phase) // _phases(window))


def _covering(
    place: Expression, phase: int, count: Expression, window: Window
) -> tuple[Expression, Expression]:
    """Return the position of a window over an element, which may not exist, and its tap there."""
    stride = _phases(window)
    if stride == 1:
        return covering(place, count, window)
    return place + window.before // stride - count, phase + count * stride


def _joined(
    parts: Sequence[Operand | None], windows: Windows, data_format: str, out: TensorType
) -> list[Form]:
    """Return the forms that write the elements of all phases, 0 for those under no window."""
    spatial = spatial_axes(data_format)
    split = [(length, 1) for length in out.shape]
    for axis, window in zip(spatial, windows, strict=True):
        split[axis] = _places(window), _phases(window)
    loops = Loops([length for both in split for length in both])
    zero = expressions.constant(0, out.dtype)
    values = [zero if part is None else loops.read(part, *loops.axes[::2]) for part in parts]
    for axis, window in reversed([*zip(spatial, windows, strict=True)]):
        count, phase = _phases(window), loops.axes[2 * axis + 1]
        values = [_chosen(phase, values[at : at + count]) for at in range(0, len(values), count)]
    whole = TensorType(out.dtype, tuple(length * phases for length, phases in split))
    made = [loops.write_all(whole, values[0])]
    if whole.shape != out.shape:
        rest = Loops(out.shape)
        begin = [0] * out.rank
        for axis, window in zip(spatial, windows, strict=True):
            begin[axis] = window.before % _phases(window)
        number = 2 + sum(part is not None for part in parts)
        value = rest.read(Operand(whole, number), *rest.shifted(begin))
        made.append(rest.write(out, value))
    return made


def _chosen(phase: Expression, values: Sequence[Expression]) -> Expression:
    """Return the value of a phase."""
    result = values[-1]
    for at in reversed(range(len(values) - 1)):
        result = expressions.where(phase < at + 1, values[at], result)
    return result


for _family in (CONVOLUTION_2D, CONVOLUTION_3D):
    _register_family(_family)
