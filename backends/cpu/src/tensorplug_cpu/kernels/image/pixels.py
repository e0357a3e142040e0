"""Images as levels and as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import PIXEL_CHANNELS, PIXEL_OPAQUE, fill_modes, pixel_levels
from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_BLOCK = 1 << 15  # elements that stay in the cache through all steps
_BY_NUMPY = fill_modes.Arithmetic(np.floor, np.where)


@kernels.prepare(specs.FROM_PIXELS, because="faster")
def from_pixels(pixels: TensorType, *, num_channels: int, out: TensorType) -> Call:
    """Convert to levels and write each channel."""
    return _writer(pixels, num_channels, PIXEL_OPAQUE, out, cut=False)


@kernels.prepare(specs.DRAW, because="faster")
def draw(image: TensorType, *, options: float, out: TensorType) -> Call:
    """Convert to bytes and write each channel."""
    return _writer(image, 4, int(PIXEL_OPAQUE * options + 0.5), out, cut=True)


def _writer(image: TensorType, count: int, alpha: int, out: TensorType, *, cut: bool) -> Call:
    channels = image.shape[2] if image.rank == 3 else 1
    sources = PIXEL_CHANNELS[channels][:count]
    shape, narrow = out.shape, out.dtype.numpy
    read = _floats(image) if image.dtype in dt.FLOATING else _whole(image, cut=cut)
    flat = (*image.shape[:2], channels)

    def run(image: Array) -> Array:
        levels = read(image.reshape(flat))
        result = np.empty(shape, narrow)
        for channel, source in enumerate(sources):
            result[:, :, channel] = alpha if source is None else levels[:, :, source]
        return result

    return without_warnings(run)


def _floats(image: TensorType) -> Any:
    work = working(image.dtype)
    if work == np.float32:
        return _from_float32

    def read(x: Array) -> Array:
        wide = x.astype(work, copy=False)
        inside = np.where(wide > 0, np.minimum(wide, 1), 0)  # NaN is not above 0
        return np.asarray(pixel_levels(inside, _BY_NUMPY))

    return read


def _from_float32(x: Array) -> Array:
    """Return 255 x, rounded, halves upwards; float64 holds it and a half exactly."""
    flat = x.reshape(-1)
    result = np.empty(flat.size, np.uint8)
    for start in range(0, flat.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        inside = np.fmax(flat[block], 0).astype(np.float64)  # NaN becomes 0
        np.minimum(inside, 1, out=inside)
        inside *= PIXEL_OPAQUE
        inside += 0.5
        result[block] = inside.astype(np.uint8)
    return result.reshape(x.shape)


def _whole(image: TensorType, *, cut: bool) -> Any:
    if image.dtype is dt.bool_:
        return lambda x: x * np.uint8(PIXEL_OPAQUE)
    if cut and image.dtype.itemsize > 1:
        return lambda x: x.clip(0, PIXEL_OPAQUE)
    if cut and image.dtype is dt.int8:
        return lambda x: x.clip(0, None)
    return lambda x: x
