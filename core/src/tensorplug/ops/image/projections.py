"""Sampling places of projective transforms, computed with primitive ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, logical_and
from tensorplug.ops.elementwise.unary import floor
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.image import fill_modes, pixel_sampling
from tensorplug.ops.kinds import widen_half
from tensorplug.ops.movement import reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

Pair = tuple[int, int]
BY_OPS = fill_modes.Arithmetic(floor, where)


@dataclass(frozen=True, slots=True)
class Projection:
    """Places [batch or 1, height, width] before the fill mode is applied.

    Places that are not finite are replaced by 0, and ``finite`` is False. ``columns``
    [1, 1, width] and ``rows`` [1, height, 1] are those of the result; ``scale`` is the divisor.
    """

    y: Tensor
    x: Tensor
    finite: Tensor
    columns: Tensor
    rows: Tensor
    scale: Tensor


def project(transforms: Tensor, size: Pair) -> Projection:
    """Return the places at which the pixels of a result of ``size`` are read."""
    count = transforms.shape[0]
    wide = widen_half(transforms)
    a0, a1, a2, b0, b1, b2, c0, c1 = (
        reshape(slice_(wide, (0, at), (count, 1)), (count, 1, 1)) for at in range(8)
    )
    columns = reshape(arange(size[1], dtype=wide.dtype), (1, 1, size[1]))
    rows = reshape(arange(size[0], dtype=wide.dtype), (1, size[0], 1))
    scale = c0 * columns + c1 * rows + 1
    x = (a0 * columns + a1 * rows + a2) / scale
    y = (b0 * columns + b1 * rows + b2) / scale
    finite = logical_and(equal(x - x, 0), equal(y - y, 0))
    return Projection(where(finite, y, 0), where(finite, x, 0), finite, columns, rows, scale)


def samples_of(
    image: Shape, projection: Projection, interpolation: str, fill_mode: str
) -> list[pixel_sampling.Sample]:
    """Return the samples of the result's values."""
    y, x = _map_places(image, projection, fill_mode)
    if interpolation == "nearest":
        rows, columns = pixel_sampling.nearest(y), pixel_sampling.nearest(x)
    else:
        rows = pixel_sampling.linear(y, closed=False)
        columns = pixel_sampling.linear(x, closed=False)
    return pixel_sampling.samples(image, _number_first_pixels(image), rows, columns)


def sloped_samples_of(
    image: Shape, projection: Projection, fill_mode: str
) -> list[pixel_sampling.Sample]:
    """Return the samples of the slopes of the result's values, for bilinear interpolation.

    Beyond the last pixel, samples are the fill value in mode "constant"; other modes have none.
    """
    if fill_mode == "constant":
        return samples_of(image, projection, "bilinear", fill_mode)
    y, x = _map_places(image, projection, fill_mode)
    rows = pixel_sampling.between(y, image[1])
    columns = pixel_sampling.between(x, image[2])
    return pixel_sampling.samples(image, _number_first_pixels(image), rows, columns)


def _map_places(image: Shape, projection: Projection, fill_mode: str) -> tuple[Tensor, Tensor]:
    """Return the places after the fill mode is applied."""
    y = fill_modes.mapped(projection.y, image[1], fill_mode, BY_OPS)
    return y, fill_modes.mapped(projection.x, image[2], fill_mode, BY_OPS)


def _number_first_pixels(image: Shape) -> Tensor:
    """Return the number of each image's first pixel."""
    batch, height, width, _ = image
    return reshape(arange(batch, dtype=dt.int32) * (height * width), (batch, 1, 1))
