"""Turned, mirrored and projected images: points in float64, pixels by one flat index each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.algorithms import fill_modes, rotation_sources
from tensorplug.plugin import Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families.warping import warper
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

    Reader = Callable[[Array, Array, Array], Array]

kernels = Kernels()

_BY_NUMPY = fill_modes.Arithmetic(np.floor, np.where)


@kernels.prepare(specs.FLIP_LEFT_RIGHT, because="faster")
def flip_left_right(image: TensorType) -> Call:
    """View the columns backwards."""
    return lambda image: image[:, :, ::-1]


@kernels.prepare(specs.ROTATE_WITH_OFFSET, because="faster")
def rotate_with_offset(
    image: TensorType,
    *,
    radians: float,
    fill_value: tuple[float, ...],
    center: tuple[float, float],
    out: TensorType,
) -> Call:
    """Take pixels by indices that depend on the shape alone, and fill the rest."""
    batch, height, width, channels = image.shape
    if not out.size:
        return lambda image: image
    pixel, inside = rotation_sources(height, width, radians, center)
    outside = np.flatnonzero(~inside)
    fill = np.array(fill_value, out.dtype.numpy)
    pixel = pixel.astype(np.intp)
    shape = out.shape

    def run(image: Array) -> Array:
        turned = image.reshape(batch, height * width, channels).take(pixel, axis=1)
        turned[:, outside] = fill
        return turned.reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.TRANSFORM, because="faster")
def transform(
    image: TensorType,
    transforms: TensorType,
    *,
    interpolation: str,
    fill_mode: str,
    fill_value: Scalar,
    out: TensorType,
) -> Call:
    """Read one image after the other, or all at once if they share a transform."""
    shape, narrow = out.shape, out.dtype.numpy
    if not out.size:
        return lambda *_inputs: np.zeros(shape, narrow)
    batch, height, width, channels = image.shape
    fill = np.array(fill_value, narrow)
    native = warper(image, out, interpolation, fill_mode)
    if native is not None:
        return without_warnings(
            lambda image, transforms: native(image, transforms.astype(np.float64), fill)
        )
    read = (
        _nearest(height, width, fill)
        if interpolation == "nearest"
        else _bilinear(height, width, fill, image)
    )
    rows = np.arange(shape[1], dtype=np.float64)[:, None]
    columns = np.arange(shape[2], dtype=np.float64)

    def one(pixels: Array, transform: Array) -> Array:
        y, x = _project(transform, rows, columns)
        known = np.isfinite(y) & np.isfinite(x)
        all_known = bool(known.all())
        if not all_known:
            y, x = np.where(known, y, 0), np.where(known, x, 0)
        y = fill_modes.mapped(y, height, fill_mode, _BY_NUMPY)
        x = fill_modes.mapped(x, width, fill_mode, _BY_NUMPY)
        result = read(pixels, y, x)
        if not all_known:
            result[:, ~known] = fill
        return result

    def run(image: Array, transforms: Array) -> Array:
        pixels = image.reshape(batch, height * width, channels)
        wide = transforms.astype(np.float64)
        if len(wide) == 1:
            return one(pixels, wide[0])
        result = np.empty(shape, narrow)
        for at, matrix in enumerate(wide):
            result[at] = one(pixels[at : at + 1], matrix)[0]
        return result

    return without_warnings(run)


def _project(transform: Array, rows: Array, columns: Array) -> tuple[Array, Array]:
    """Return the points [height, width] at which one transform reads."""
    a0, a1, a2, b0, b1, b2, c0, c1 = transform
    x = a0 * columns + a1 * rows + a2
    y = b0 * columns + b1 * rows + b2
    if c0 or c1:
        scale = c0 * columns + c1 * rows + 1
        x /= scale
        y /= scale
    return y, x


def _nearest(height: int, width: int, fill: Array) -> Reader:
    def read(pixels: Array, y: Array, x: Array) -> Array:
        return _taken(pixels, _rounded(y), _rounded(x), height, width, fill)

    return read


def _rounded(at: Array) -> Array:
    below = np.floor(at)
    below += at - below >= 0.5
    return below


def _bilinear(height: int, width: int, fill: Array, image: TensorType) -> Reader:
    work = working(image.dtype) if image.dtype in dt.FLOATING else np.dtype(np.float64)

    def read(pixels: Array, y: Array, x: Array) -> Array:
        top, left = np.floor(y), np.floor(x)
        down, across = (distance.astype(work)[..., None] for distance in (y - top, x - left))

        def along(row: Array) -> Array:
            start = _taken(pixels, row, left, height, width, fill).astype(work, copy=False)
            end = _taken(pixels, row, left + 1, height, width, fill).astype(work, copy=False)
            start *= 1 - across
            end *= across
            start += end
            return start

        upper, lower = along(top), along(top + 1)
        upper *= 1 - down
        lower *= down
        upper += lower
        return upper.astype(fill.dtype, copy=False)

    return read


def _taken(
    pixels: Array, row: Array, column: Array, height: int, width: int, fill: Array
) -> Array:
    """Return the pixels [batch, height, width, channels] at whole points, ``fill`` outside."""
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    if inside.all():
        return pixels.take((row * width + column).astype(np.intp), axis=1)
    number = np.where(inside, row * width + column, 0).astype(np.intp)
    result = pixels.take(number, axis=1)
    result[:, ~inside] = fill
    return result
