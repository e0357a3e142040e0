"""Pooling: the largest element or the average of each window, over one to three axes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import dilated_pooling_windows, lowest, pooling_windows
from tensorplug.plugin import DType, Expression, TensorType, Windows, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.extremes import first_largest
from tensorplug_loops.forms.loops import Loops, flat, whole
from tensorplug_loops.forms.nn.windows import (
    added,
    collect,
    count,
    find_winners,
    first_in,
    over_element,
    over_taps,
    placed,
    source,
    taken,
)
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Sequence

forms = FormTable()

Attributes = dict[str, Any]
_FORMATS = {3: "NWC", 4: "NHWC", 5: "NDHWC"}


def _format(attributes: Attributes, rank: int) -> str:
    return str(attributes.get("data_format", _FORMATS[rank]))


def _loops(out: TensorType, windows: Windows, data_format: str) -> tuple[Loops, list[Expression]]:
    """Return loops over [*out, *taps], and the spatial index of the element under each tap."""
    loops = Loops((*out.shape, *(window.filter for window in windows)))
    _, positions, _ = taken(data_format, loops.axes)
    taps = loops.axes[out.rank :]
    return loops, [source(*each) for each in zip(positions, taps, windows, strict=True)]


def _read(loops: Loops, x: Operand, index: Sequence[Expression], form: str, outside: Any) -> Any:
    batch, _, channel = taken(form, loops.axes)
    return loops.read(x, *placed(form, batch, index, channel), outside=outside)


def _largest(x: Operand, windows: Windows, form: str, out: TensorType) -> Form:
    loops, index = _loops(out, windows, form)
    value = _read(loops, x, index, form, lowest(x.dtype))
    return loops.write(out, over_taps(loops, "max", value, out))


def _average(x: Operand, windows: Windows, form: str, out: TensorType) -> Form:
    loops, index = _loops(out, windows, form)
    wide = out.dtype.compute  # the sum is not rounded before it is divided
    value = expressions.cast(_read(loops, x, index, form, 0), wide)
    total = over_taps(loops, "sum", value, out)
    _, positions, _ = taken(form, loops.axes)
    average = total / _counted(positions, windows, wide)
    return loops.write(out, expressions.cast(average, out.dtype))


def _counted(positions: Sequence[Expression], windows: Windows, dtype: DType) -> Expression:
    """Return how many elements lie under the window at a position."""
    result = whole(1)
    for at, window in zip(positions, windows, strict=True):
        result = result * count(at, window)
    return expressions.cast(result, dtype)


@forms.form(specs.MAX_POOL, specs.MAX_POOL_3D)
def max_pool(x: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Return the largest element of each window; the dtype's lowest on padding alone."""
    form = _format(attributes, x.rank)
    return _largest(x, pooling_windows(x.shape, **attributes), form, out)


@forms.form(specs.AVG_POOL, specs.AVG_POOL_3D)
def avg_pool(x: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Return the average of each window; NaN on padding alone."""
    form = _format(attributes, x.rank)
    return _average(x, pooling_windows(x.shape, **attributes), form, out)


@forms.form(specs.POOL)
def pool(input: Operand, *, pooling_type: str, attributes: Attributes, out: TensorType) -> Form:
    """Take the largest or the average; taps may lie apart."""
    windows = dilated_pooling_windows(input.shape, **attributes)
    take = _largest if pooling_type == "max" else _average
    return take(input, windows, _FORMATS[input.rank], out)


@forms.form(specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD)
def max_pool_grad(
    dy: Operand, input: Operand, output: Operand, *, attributes: Attributes, out: TensorType
) -> list[Form]:
    """Find the winner of each window, then add up, for each element, dy of those that it won."""
    windows, form = pooling_windows(input.shape, **attributes), _format(attributes, out.rank)
    if all(at.stride == at.filter and at.out * at.stride == at.size for at in windows):
        return [_give_to_winners(dy, input, windows, form, out)]
    loops, index = _loops(output.type, windows, form)
    value = _read(loops, input, index, form, lowest(input.dtype))
    _, positions, _ = taken(form, loops.axes)
    found, winners = find_winners(loops, value, windows, positions, Operand(output.type, 3))
    return [found, collect(dy, winners, windows, form, out)]


def _give_to_winners(
    dy: Operand, input: Operand, windows: Windows, form: str, out: TensorType
) -> Form:
    """Loop over [*out], with the taps behind each spatial axis: windows share no element."""
    batch, _, channel = taken(form, out.shape)
    pairs = [[at.out, at.filter] for at in windows]
    lengths = placed(form, [batch], pairs, [channel])
    loops = Loops([length for each in lengths for length in each])
    first = 2 if form.endswith("C") else 3
    taps = range(first, first + 2 * len(windows), 2)
    value = loops.read_in_order(input)
    slope = loops.read_in_order(dy, [at for at in range(len(loops.shape)) if at not in taps])
    tap = flat([loops.axes[at] for at in taps], [at.filter for at in windows])
    _, winner = first_largest(loops, value, tap, taps)
    won = expressions.apply(
        "equal", expressions.apply("maximum", winner, 0), expressions.cast(tap, winner.dtype)
    )
    zero = expressions.constant(0, out.dtype)
    return loops.write_all(out, expressions.where(won, slope, zero))


@forms.form(specs.MAX_POOL_WITH_ARGMAX)
def max_pool_with_argmax(
    x: Operand,
    *,
    filter_size: tuple[int, ...],
    strides: tuple[int, ...],
    pad: Any,
    include_batch_in_index: bool,
    out: tuple[TensorType, TensorType],
) -> Form:
    """Return the winner and its position among the elements."""
    windows = pooling_windows(x.shape, filter_size=filter_size, strides=strides, pad=pad)
    loops, index = _loops(out[0], windows, "NHWC")
    value = _read(loops, x, index, "NHWC", lowest(x.dtype))
    batch, positions, channel = taken("NHWC", loops.axes)
    first = batch * (x.size // max(x.shape[0], 1)) if include_batch_in_index else whole(0)

    def number(taps: Sequence[Expression]) -> Expression:
        pixel = [source(*each) for each in zip(positions, taps, windows, strict=True)]
        return flat(pixel, x.shape[1:3]) * x.shape[3] + first

    best, at = first_in(loops, value, windows, positions, number)
    loops.write(out[0], best)
    place = expressions.where(at < 0, at, at + expressions.cast(channel, at.dtype))
    return loops.write(out[1], expressions.cast(place, dt.int32))


@forms.form(specs.AVG_POOL_GRAD, specs.AVG_POOL_3D_GRAD)
def avg_pool_grad(dy: Operand, input: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Add up, for each element, its shares of the windows over it."""
    windows, form = pooling_windows(input.shape, **attributes), _format(attributes, out.rank)
    loops, found = over_element(windows, form, out)
    wide, shares = out.dtype.compute, []
    constant = all(window.filter == count(whole(0), window) for window in windows)
    for index, _ in found:
        share = expressions.cast(loops.read(dy, *index, outside=0), wide)
        if not constant:  # at least 1: what windows on padding alone have is given to nothing
            counts = _counted(taken(form, index)[1], windows, wide)
            share = share / expressions.apply("maximum", counts, 1)
        shares.append(share)
    total = added(loops, shares, out)
    if constant:
        total = total / prod(window.filter for window in windows)
    return loops.write(out, expressions.cast(total, out.dtype))
