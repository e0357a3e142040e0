"""Mirrored, rotated and projected images."""

from __future__ import annotations

from math import cos, sin

from tensorplug.algorithms import fill_modes
from tensorplug.plugin import (
    Backend,
    Expression,
    KernelRefusedError,
    Scalar,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.image.sampling import (
    floor,
    interpolate,
    linear,
    nearest,
    precise,
    working,
)
from tensorplug_loops.forms.loops import Loops, both
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.FLIP_LEFT_RIGHT)
def flip_left_right(image: Operand, *, out: TensorType) -> Form:
    """Read columns from the end."""
    loops = Loops(out.shape)
    batch, row, column, channel = loops.axes
    return loops.write(out, loops.read(image, batch, row, out.shape[2] - 1 - column, channel))


@forms.form(specs.ROTATE_WITH_OFFSET)
def rotate_with_offset(
    image: Operand,
    *,
    radians: float,
    fill_value: tuple[float, ...],
    center: tuple[float, float],
    backend: Backend,
    out: TensorType,
) -> Form:
    """Read the pixel nearest to the place that comes to each pixel."""
    if dt.float64 not in backend.dtypes:
        raise KernelRefusedError("places are computed in float64")
    loops = Loops(out.shape)
    batch, row, column, channel = loops.axes
    middle = center[0] * out.shape[2], center[1] * out.shape[1]
    x = expressions.cast(column, dt.float64) - middle[0]
    y = expressions.cast(row, dt.float64) - middle[1]
    at_x = nearest(x * cos(radians) - y * sin(radians) + middle[0])
    at_y = nearest(x * sin(radians) + y * cos(radians) + middle[1])
    value = loops.read(image, batch, at_y, at_x, channel, outside=0)
    fill = expressions.constant(fill_value[-1], out.dtype)
    for number, own in reversed(list(enumerate(fill_value[:-1]))):
        fill = expressions.where(channel <= number, expressions.constant(own, out.dtype), fill)
    inside = both(at_y >= 0, at_y < out.shape[1], at_x >= 0, at_x < out.shape[2])
    return loops.write(out, expressions.where(inside, value, fill))


@forms.form(specs.TRANSFORM)
def transform(
    image: Operand,
    transforms: Operand,
    *,
    interpolation: str,
    fill_mode: str,
    fill_value: Scalar,
    backend: Backend,
    out: TensorType,
) -> Form:
    """Read at the places of a projection."""
    loops = Loops(out.shape)
    batch, row, column, _ = loops.axes
    which = batch if transforms.shape[0] > 1 else 0
    work = precise(transforms.dtype, backend)
    a0, a1, a2, b0, b1, b2, c0, c1 = (
        expressions.cast(loops.read(transforms, which, at), work) for at in range(8)
    )
    x, y = expressions.cast(column, work), expressions.cast(row, work)
    scale = c0 * x + c1 * y + 1
    places = (b0 * x + b1 * y + b2) / scale, (a0 * x + a1 * y + a2) / scale
    finite = both(*(expressions.apply("equal", at - at, 0) for at in places))
    rows, columns = (
        _mapped(expressions.where(finite, at, 0), length, fill_mode)
        for at, length in zip(places, image.shape[1:3], strict=True)
    )
    if interpolation == "nearest":
        pixel = nearest(rows), nearest(columns)
        value = loops.read(image, batch, *pixel, loops.axes[3], outside=fill_value)
    else:
        taps = linear(rows, closed=False), linear(columns, closed=False)
        wide = working(image.dtype, backend)
        value = interpolate(loops, image, batch, *taps, fill=fill_value, work=wide)
    fill = expressions.constant(fill_value, out.dtype)
    return loops.write(out, expressions.where(finite, value, fill))


def _mapped(at: Expression, length: int, mode: str) -> Expression:
    by = fill_modes.Arithmetic(floor, expressions.where)
    made: Expression = fill_modes.mapped(at, length, mode, by)
    return made
