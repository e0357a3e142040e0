"""Pooling: the largest element or the average of each window, over one to three axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import dilated_pooling_windows, lowest, pooling_windows
from tensorplug.plugin import DType, Expression, TensorType, Windows, expressions, specs
from tensorplug_loops.forms.extremes import first_largest
from tensorplug_loops.forms.loops import Loops, both, flat, unravel, whole
from tensorplug_loops.forms.nn.windows import (
    count,
    is_inside,
    over_taps,
    placed,
    position,
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


def _winner(
    loops: Loops, x: Operand, index: Sequence[Expression], windows: Windows, form: str
) -> list[Expression]:
    """Return the first largest element of each window and its position, -1 on padding alone."""
    value = _read(loops, x, index, form, 0)
    at = flat(index, [window.size for window in windows])
    at = expressions.where(is_inside(index, windows), at, -1)
    return first_largest(loops, value, at, range(x.rank, len(loops.shape)))


@forms.form(specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD)
def max_pool_grad(
    dy: Operand, input: Operand, output: Operand, *, attributes: Attributes, out: TensorType
) -> Form:
    """Add dy up at the winner of each window."""
    windows, form = pooling_windows(input.shape, **attributes), _format(attributes, out.rank)
    loops, index = _loops(output.type, windows, form)
    gradient = loops.read(dy, *loops.axes[: out.rank])
    _, at = _winner(loops, input, index, windows, form)
    batch, _, channel = taken(form, loops.axes)
    place = unravel(at, [window.size for window in windows])
    return loops.write_at(out, placed(form, batch, place, channel), gradient, "sum", 0)


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
    best, at = _winner(loops, x, index, windows, "NHWC")
    batch, _, channel = taken("NHWC", loops.axes)
    place = at * x.shape[-1] + channel
    if include_batch_in_index:
        place = place + batch * (x.size // max(x.shape[0], 1))
    loops.write(out[0], expressions.where(at < 0, lowest(x.dtype), best))
    number = expressions.cast(expressions.where(at < 0, -1, place), out[1].dtype)
    return loops.write(out[1], number)


@forms.form(specs.AVG_POOL_GRAD, specs.AVG_POOL_3D_GRAD)
def avg_pool_grad(dy: Operand, input: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Add up, for each element, its shares of the windows over it."""
    windows, form = pooling_windows(input.shape, **attributes), _format(attributes, out.rank)
    loops = Loops((*out.shape, *(window.filter for window in windows)))
    batch, places, channel = taken(form, loops.axes)
    taps = loops.axes[out.rank :]
    found = [position(*each) for each in zip(places, taps, windows, strict=True)]
    positions = [at for at, _ in found]
    share = loops.read(dy, *placed(form, batch, positions, channel), outside=0)
    share = share / _counted(positions, windows, out.dtype)
    zero = expressions.constant(0, out.dtype)
    value = expressions.where(both(*(exact for _, exact in found)), share, zero)
    return loops.write(out, over_taps(loops, "sum", value, out))
