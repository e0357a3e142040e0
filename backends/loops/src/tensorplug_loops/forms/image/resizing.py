"""Resizing images: tables made on the host hold the pixels to use, and their weights."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorplug.algorithms import bilinear_taps, nearest_pixels
from tensorplug.plugin import DType, Expression, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.nn.windows import over_taps
from tensorplug_loops.forms.table import Form, FormTable, Operand, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

forms = FormTable()

Attributes = dict[str, Any]
# For each pixel of an axis, the pixels to add up, -1 for none, and their weights.
Shares: TypeAlias = "tuple[Table, Table | None]"


def _grid(attributes: Attributes) -> dict[str, bool]:
    return {name: attributes[name] for name in ("align_corners", "half_pixel_centers")}


@forms.form(specs.RESIZE_BILINEAR)
def resize_bilinear(images: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Interpolate along the height, then along the width."""
    loops, wide = Loops(out.shape), out.dtype.compute
    batch, *places, channel = loops.axes
    rows, columns = (
        _ends(loops, at, images.shape[axis], out.shape[axis], attributes, wide)
        for axis, at in enumerate(places, 1)
    )
    pixels = [
        [
            expressions.cast(loops.read(images, batch, row, column, channel), wide)
            for row in rows[:2]
        ]
        for column in columns[:2]
    ]
    value = _between([_between(each, rows[-1]) for each in pixels], columns[-1])
    return loops.write(out, expressions.cast(value, out.dtype))


def _ends(
    loops: Loops, at: Expression, old: int, new: int, attributes: Attributes, dtype: DType
) -> list[Expression]:
    """Return the pixels around a place, and the distance from the former one, or its own pixel."""
    taps = bilinear_taps(old, new, **_grid(attributes))
    if taps is None:  # an axis that keeps its size keeps its pixels, infinite ones too
        return [at]
    tables = taps.lower, taps.upper, taps.fraction.astype(dtype.numpy)
    return [loops.read(Operand.of(table), at) for table in tables]


def _between(ends: Sequence[Expression], share: Expression) -> Expression:
    return ends[0] + (ends[1] - ends[0]) * share if len(ends) > 1 else ends[0]


@forms.form(specs.RESIZE_BILINEAR_GRAD)
def resize_bilinear_grad(
    images: Operand,  # noqa: ARG001  # an input of the kernel
    dy: Operand,
    *,
    attributes: Attributes,
    out: TensorType,
) -> Form:
    """Add up, for each pixel, its shares of the new pixels that use it."""
    sides = []
    for axis in (1, 2):
        old, new = out.shape[axis], dy.shape[axis]
        taps = bilinear_taps(old, new, **_grid(attributes))
        shares = None if taps is None else _shares(*taps.shares(), old, out.dtype.compute)
        sides.append(shares)
    return _collect(sides, dy, out)


@forms.form(specs.RESIZE_NEAREST_NEIGHBOR)
def resize_nearest_neighbor(images: Operand, *, attributes: Attributes, out: TensorType) -> Form:
    """Read the nearest pixel."""
    loops = Loops(out.shape)
    batch, *places, channel = loops.axes
    index = [
        loops.read(Operand.of(nearest_pixels(old, new, **_grid(attributes))), at)
        for at, old, new in zip(places, images.shape[1:3], out.shape[1:3], strict=True)
    ]
    return loops.write(out, loops.read(images, batch, *index, channel))


@forms.form(specs.RESIZE_NEAREST_NEIGHBOR_GRAD)
def resize_nearest_neighbor_grad(
    images: Operand,  # noqa: ARG001  # an input of the kernel
    dy: Operand,
    *,
    attributes: Attributes,
    out: TensorType,
) -> Form:
    """Add up, for each pixel, the new pixels that show it."""
    sides = []
    for axis in (1, 2):
        old, new = out.shape[axis], dy.shape[axis]
        shown = nearest_pixels(old, new, **_grid(attributes))
        pixels, _ = _shares(shown, np.arange(new), np.ones(new), old, out.dtype.compute)
        sides.append((pixels, None))
    return _collect(sides, dy, out)


def _shares(old: Table, new: Table, share: Table, size: int, dtype: DType) -> Shares:
    """Return the shares of ``size`` pixels, from pairs of an old pixel and a new one."""
    order = np.argsort(old, kind="stable")
    starts = np.searchsorted(old[order], np.arange(size + 1))
    which = np.arange(order.size) - starts[old[order]], old[order]
    most = max(1, int(np.diff(starts).max()))
    pixels, weights = np.full((most, size), -1, np.int32), np.zeros((most, size))
    pixels[which], weights[which] = new[order], share[order]
    return pixels, weights.astype(dtype.numpy)


def _collect(sides: Sequence[Shares | None], dy: Operand, out: TensorType) -> Form:
    """Loop over [*out, *shares of a row, of a column]."""
    loops = Loops((*out.shape, *(1 if side is None else len(side[0]) for side in sides)))
    batch, *places, channel = loops.axes[:4]
    index, weights = [], []
    for side, at, number in zip(sides, places, loops.axes[4:], strict=True):
        pixels, own = side or (None, None)
        index.append(at if pixels is None else loops.read(Operand.of(pixels), number, at))
        weights += [] if own is None else [loops.read(Operand.of(own), number, at)]
    slope = loops.read(dy, batch, *index, channel, outside=0)
    value = expressions.cast(slope, out.dtype.compute)
    if weights:
        value = value * reduce(operator.mul, weights)
    return loops.write(out, expressions.cast(over_taps(loops, "sum", value, out), out.dtype))
