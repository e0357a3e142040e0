"""Resizing images, bilinear and to the nearest pixel; gradients are added up at the pixels."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import (
    Backend,
    Expression,
    KernelRefusedError,
    Shape,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.image.sampling import floor
from tensorplug_loops.forms.loops import Loops, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

Attributes = dict[str, Any]


def _place(at: Expression, old: int, new: int, attributes: Attributes) -> Expression:
    """Return the place of a new pixel on an axis of old ones, in float64."""
    position = expressions.cast(at, dt.float64)
    if attributes["half_pixel_centers"]:
        position = position + 0.5
    if attributes["align_corners"] and new > 1:
        return position * ((old - 1) / (new - 1))
    return position * (old / max(new, 1))


def _around(
    at: Expression, old: int, new: int, attributes: Attributes
) -> tuple[Expression, Expression, Expression]:
    """Return the lower and the upper pixel, and the distance from the lower one."""
    place = _place(at, old, new, attributes)
    if attributes["half_pixel_centers"]:
        place = expressions.apply("maximum", place - 0.5, 0)
    lower = floor(place)
    upper = expressions.apply("minimum", expressions.apply("ceil", place), old - 1)
    fraction = expressions.where(upper > lower, place - lower, 0)
    return whole(lower), whole(upper), fraction


def _nearest(at: Expression, old: int, new: int, attributes: Attributes) -> Expression:
    place = _place(at, old, new, attributes)
    pixel = floor(place)
    number = whole(pixel)
    if attributes["align_corners"]:
        number = number + whole(place - pixel >= 0.5)
    return expressions.apply("minimum", number, old - 1)


def _shown(loops: Loops, old: Shape, attributes: Attributes) -> list[Expression]:
    """Return the index in images of shape ``old`` of the pixel that each new one shows."""
    batch, *places, channel = loops.axes
    index = [
        _nearest(at, old[number], loops.shape[number], attributes)
        for number, at in enumerate(places, 1)
    ]
    return [batch, *index, channel]


def _check(backend: Backend) -> None:
    if dt.float64 not in backend.dtypes:
        raise KernelRefusedError("places between pixels are computed in float64")


@forms.form(specs.RESIZE_BILINEAR)
def resize_bilinear(
    images: Operand, *, attributes: Attributes, backend: Backend, out: TensorType
) -> Form:
    """Interpolate along the height, then along the width."""
    _check(backend)
    loops = Loops(out.shape)
    batch, row, column, channel = loops.axes
    resized = [images.shape[at] != out.shape[at] for at in (1, 2)]
    (top, bottom, down), (left, right, across) = (
        _around(at, images.shape[number], out.shape[number], attributes)
        if resized[number - 1]
        else (at, at, expressions.constant(0, dt.float64))
        for number, at in ((1, row), (2, column))
    )

    def along(height: Expression, width: Expression) -> Expression:
        return loops.read(images, batch, height, width, channel)

    def between(low: Expression, high: Expression, share: Expression) -> Expression:
        return low + (high - low) * expressions.cast(share, out.dtype)

    def of_column(at: Expression) -> Expression:
        upper = along(top, at)
        return between(upper, along(bottom, at), down) if resized[0] else upper

    value = of_column(left)
    if resized[1]:
        value = between(value, of_column(right), across)
    return loops.write(out, value)


@forms.form(specs.RESIZE_BILINEAR_GRAD)
def resize_bilinear_grad(
    images: Operand,  # noqa: ARG001  # an input of the kernel
    dy: Operand,
    *,
    attributes: Attributes,
    backend: Backend,
    out: TensorType,
) -> Form:
    """Loop over [*dy, 2, 2]: the lower and the upper pixel along each axis."""
    _check(backend)
    loops = Loops((*dy.shape, *(2 if dy.shape[at] != out.shape[at] else 1 for at in (1, 2))))
    index = loops.axes[:4]
    value = loops.read(dy, *index)
    for number, which in ((1, loops.axes[4]), (2, loops.axes[5])):
        if dy.shape[number] == out.shape[number]:
            continue
        sizes = out.shape[number], dy.shape[number]
        lower, upper, share = _around(index[number], *sizes, attributes)
        is_lower = which < 1
        weight = expressions.where(is_lower, 1 - share, share)
        pixel = expressions.where(is_lower, lower, upper)
        # 0 times infinity would be NaN: what has no weight is not written.
        index[number] = expressions.where(expressions.apply("equal", weight, 0), -1, pixel)
        value = value * expressions.cast(weight, out.dtype)
    return loops.write_at(out, index, value, "sum", 0)


@forms.form(specs.RESIZE_NEAREST_NEIGHBOR)
def resize_nearest_neighbor(
    images: Operand, *, attributes: Attributes, backend: Backend, out: TensorType
) -> Form:
    """Read the nearest pixel."""
    _check(backend)
    loops = Loops(out.shape)
    return loops.write(out, loops.read(images, *_shown(loops, images.shape, attributes)))


@forms.form(specs.RESIZE_NEAREST_NEIGHBOR_GRAD)
def resize_nearest_neighbor_grad(
    images: Operand,  # noqa: ARG001  # an input of the kernel
    dy: Operand,
    *,
    attributes: Attributes,
    backend: Backend,
    out: TensorType,
) -> Form:
    """Add dy up at the nearest pixels."""
    _check(backend)
    loops = Loops(dy.shape)
    value = loops.read(dy, *loops.axes)
    return loops.write_at(out, _shown(loops, out.shape, attributes), value, "sum", 0)
