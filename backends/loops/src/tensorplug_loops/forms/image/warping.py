"""Mirrored, rotated and projected images."""

from __future__ import annotations

import numpy as np

from tensorplug.algorithms import fill_modes, rotation_sources
from tensorplug.plugin import (
    Backend,
    Expression,
    Scalar,
    TensorType,
    expressions,
    specs,
)
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
    out: TensorType,
) -> Form:
    """Read pixels by a table of the pixel that comes to each, and fill the rest."""
    batch, height, width, channels = out.shape
    pixels, inside = rotation_sources(height, width, radians, center)
    loops = Loops((batch, height * width, channels))
    which, place, channel = loops.axes
    pixel = loops.read(Operand.of(np.where(inside, pixels, -1).astype(np.int32)), place)
    fills = np.array(fill_value).astype(out.dtype.compute.numpy)
    fill = expressions.cast(loops.read(Operand.of(fills), channel), out.dtype)
    value = loops.read(image.reshaped(loops.shape), which, pixel, channel, outside=0)
    return loops.write(out, expressions.where(pixel >= 0, value, fill))


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
