"""Values of images between pixels: sums of pixels with weights."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from tensorplug.plugin import Backend, DType, Expression, Scalar, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_loops.forms.table import Operand


class Tap(NamedTuple):
    """A pixel of one axis, an int64, and its weight."""

    pixel: Expression
    weight: Expression


def floor(x: Expression) -> Expression:
    """Return the largest whole number that is not above x."""
    return expressions.apply("floor", x)


def nearest(at: Expression) -> Expression:
    """Return the pixel nearest to a place; halves go to the upper one."""
    below = floor(at)
    return whole(below) + whole(at - below >= 0.5)


def linear(at: Expression, *, closed: bool) -> list[Tap]:
    """Return the pixels around a place; if ``closed``, twice the same for a pixel itself."""
    below = floor(at)
    part, lower = at - below, whole(below)
    upper = lower + whole(part > 0) if closed else lower + 1
    return [Tap(lower, 1 - part), Tap(upper, part)]


def precise(dtype: DType, backend: Backend) -> DType:
    """Return the dtype for places in images, told in ``dtype``: float64 where there is one."""
    return dt.float64 if dt.float64 in backend.dtypes else dtype.compute


def working(dtype: DType, backend: Backend) -> DType:
    """Return the dtype for weighted sums of values of ``dtype``."""
    if dtype in dt.FLOATING:
        return dtype.compute
    wide = dtype.itemsize > 2 and dt.float64 in backend.dtypes
    return dt.float64 if wide else dt.float32


def interpolate(
    loops: Loops,
    image: Operand,
    batch: Expression,
    rows: Sequence[Tap],
    columns: Sequence[Tap],
    *,
    fill: Scalar | None,
    work: DType,
) -> Expression:
    """Return the weighted sum of pixels, with ``fill`` for those that do not exist."""
    total: Expression | None = None
    for y, x in product(rows, columns):
        pixel = loops.read(image, batch, y.pixel, x.pixel, loops.axes[-1], outside=fill)
        weight = expressions.cast(y.weight * x.weight, work)
        term = expressions.cast(pixel, work) * weight
        total = term if total is None else total + term
    assert total is not None
    return expressions.cast(total, image.dtype)
