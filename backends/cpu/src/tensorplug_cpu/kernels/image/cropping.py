"""Crops: coordinates in float64, pixels by one flat index each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.CROP_AND_RESIZE, because="faster")
def crop_and_resize(
    image: TensorType,
    boxes: TensorType,
    box_ind: TensorType,
    *,
    crop_size: tuple[int, int],
    method: str,
    extrapolation_value: float,
    out: TensorType,
) -> Call:
    """Read the pixels around each point of each box, and blend them."""
    batch, height, width, channels = image.shape
    narrow, shape = out.dtype.numpy, out.shape
    work = working(out.dtype)
    if not out.size:
        return lambda *_inputs: np.zeros(shape, narrow)
    read = _nearest if method == "nearest" else _bilinear

    def run(image: Array, boxes: Array, box_ind: Array) -> Array:
        edges = boxes.astype(np.float64)
        y, in_height = _coordinates(edges[:, 0], edges[:, 2], height, crop_size[0])
        x, in_width = _coordinates(edges[:, 1], edges[:, 3], width, crop_size[1])
        real = (box_ind >= 0) & (box_ind < batch)
        first = np.where(real, box_ind, 0).astype(np.intp) * (height * width)
        pixels = image.reshape(-1, channels).astype(work, copy=False)
        result = read(pixels, first[:, None, None], y[:, :, None], x[:, None, :], width)
        outside = ~(in_height[:, :, None] & in_width[:, None, :])
        result[outside] = extrapolation_value
        result[~real] = 0
        return result.astype(narrow, copy=False)

    return without_warnings(run)


def _coordinates(low: Array, high: Array, length: int, count: int) -> tuple[Array, Array]:
    """Return [boxes, count] coordinates, those outside as 0, and which ones are inside."""
    low, high = low[:, None], high[:, None]
    if count > 1:
        steps = np.arange(count, dtype=np.float64)
        at = low * (length - 1) + (high - low) * steps * (length - 1) / (count - 1)
    else:
        at = 0.5 * (low + high) * (length - 1)
    inside = (at >= 0) & (at <= length - 1)
    return np.where(inside, at, 0), inside


def _nearest(pixels: Array, first: Array, y: Array, x: Array, width: int) -> Array:
    taken: Array = pixels.take(first + _rounded(y) * width + _rounded(x), axis=0)
    return taken


def _rounded(at: Array) -> Array:
    below = np.floor(at)
    below += at - below >= 0.5
    return below.astype(np.intp)


def _bilinear(pixels: Array, first: Array, y: Array, x: Array, width: int) -> Array:
    top, left = np.floor(y), np.floor(x)
    down = (y - top)[..., None].astype(pixels.dtype)
    across = (x - left)[..., None].astype(pixels.dtype)
    rows = [first + edge.astype(np.intp) * width for edge in (top, np.ceil(y))]
    columns = [edge.astype(np.intp) for edge in (left, np.ceil(x))]
    upper, lower = (
        _between(
            pixels.take(row + columns[0], axis=0), pixels.take(row + columns[1], axis=0), across
        )
        for row in rows
    )
    return _between(upper, lower, down)


def _between(start: Array, end: Array, part: Array) -> Array:
    """Return ``start + (end - start) * part``, made in the place of ``end``."""
    end -= start
    end *= part
    end += start
    return end
