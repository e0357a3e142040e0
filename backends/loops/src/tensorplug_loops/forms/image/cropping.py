"""Crops of images, resized."""

from __future__ import annotations

from tensorplug.plugin import Backend, Expression, TensorType, expressions, specs
from tensorplug_loops.forms.image.sampling import interpolate, linear, nearest, precise, working
from tensorplug_loops.forms.loops import Loops, both, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


def _place(
    low: Expression, high: Expression, length: int, at: Expression, count: int
) -> Expression:
    """Return a place between two edges of a box, in pixels."""
    first, last = low * (length - 1), high * (length - 1)
    if count == 1:
        return (first + last) * 0.5
    step = expressions.cast(at, low.dtype)
    return (first * (count - 1 - step) + last * step) / (count - 1)


@forms.form(specs.CROP_AND_RESIZE)
def crop_and_resize(
    image: Operand,
    boxes: Operand,
    box_ind: Operand,
    *,
    method: str,
    extrapolation_value: float,
    backend: Backend,
    out: TensorType,
) -> Form:
    """Read at places between the edges of a box; boxes of images that do not exist give 0."""
    loops = Loops(out.shape)
    box, *steps, channel = loops.axes
    work = precise(boxes.dtype, backend)
    edges = [expressions.cast(loops.read(boxes, box, at), work) for at in range(4)]
    which = whole(loops.read(box_ind, box))
    exists = both(which >= 0, which < image.shape[0])
    places, conditions = [], []
    for number, step in enumerate(steps):
        length, count = image.shape[number + 1], out.shape[number + 1]
        at = _place(edges[number], edges[number + 2], length, step, count)
        inside = both(at >= 0, at <= length - 1)
        conditions.append(inside)
        places.append(expressions.where(inside, at, 0))
    if method == "nearest":
        pixel = [nearest(at) for at in places]
        value = loops.read(image, which, *pixel, channel, outside=0)
    else:
        rows, columns = (linear(at, closed=True) for at in places)
        work = working(image.dtype, backend)
        value = interpolate(loops, image, which, rows, columns, fill=0, work=work)
    fill = expressions.constant(extrapolation_value, out.dtype)
    value = expressions.where(both(*conditions), expressions.cast(value, out.dtype), fill)
    return loops.write(out, expressions.where(exists, value, expressions.constant(0, out.dtype)))
