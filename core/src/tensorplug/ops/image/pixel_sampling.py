"""Sampling images between pixels, and the transposes, in primitive ops.

A value at a place is a sum of samples: pixels with weights. Their slopes are the weights'
derivatives along y and x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.ops.elementwise.arithmetic import add, maximum, minimum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import greater_equal, less_equal, logical_and
from tensorplug.ops.elementwise.unary import floor
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import broadcast_to, expand_dims, reshape
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

    Taps = Sequence["Tap"]


@dataclass(frozen=True, slots=True)
class Tap:
    """A pixel of one axis (an integer in a float tensor), its weight and the weight's slope."""

    pixel: Tensor
    weight: Tensor
    slope: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A pixel of a batch of images: its number, whether it exists, its weight and slopes."""

    pixel: Tensor
    inside: Tensor
    weight: Tensor
    along_y: Tensor
    along_x: Tensor


def linear(at: Tensor, *, closed: bool) -> Taps:
    """Return the pixels below and above ``at``.

    The upper neighbour of an integer is the integer itself if ``closed``, else the next one,
    with weight 0.
    """
    below = floor(at)
    part = at - below
    above = where(part > 0, below + 1, below) if closed else below + 1
    return Tap(below, 1 - part, -1.0), Tap(above, part, 1.0)


def between(at: Tensor, length: int) -> Taps:
    """Return the neighbours of ``at``: for an integer, the pixel and the next one.

    There ``linear`` reads a single pixel, which gives the value, but no slope.
    """
    below = maximum(minimum(floor(at), length - 2), 0)
    part = at - below
    return Tap(below, 1 - part, -1.0), Tap(below + 1, part, 1.0)


def nearest(at: Tensor) -> Taps:
    """Return the pixel nearest to ``at``; halves go to the upper one."""
    below = floor(at)
    upper = astype(at - below >= 0.5, at.dtype)
    return (Tap(below + upper, at * 0 + 1, 0.0),)


def samples(image: Shape, first: Tensor, rows: Taps, columns: Taps) -> list[Sample]:
    """Return the samples of a value, for images of shape [batch, height, width, channels].

    ``first`` is the number of the image's first pixel, int32. It broadcasts with ``rows`` and
    ``columns``.
    """
    _, height, width, _ = image
    result = []
    for y in rows:
        for x in columns:
            inside = logical_and(_lies_within(y.pixel, height), _lies_within(x.pixel, width))
            pixel = first + _clip_index(y.pixel, height) * width + _clip_index(x.pixel, width)
            along = (y.slope * x.weight, y.weight * x.slope)
            result.append(Sample(pixel, inside, y.weight * x.weight, *along))
    return result


def choose_dtype(dtype: DType) -> DType:
    """Return the dtype for weighted sums of values of ``dtype``."""
    if dtype in dt.FLOATING:
        return dtype.compute
    return dt.float32 if dtype.itemsize <= 2 else dt.float64


def interpolate(image: Tensor, parts: Sequence[Sample], fill: Scalar, work: DType) -> Tensor:
    """Return the weighted sum of the samples, with ``fill`` for pixels that do not exist."""
    terms = (
        astype(pick(image, part, fill), work) * _spread_to_channels(part.weight, work)
        for part in parts
    )
    return reduce(add, terms)


def pick(image: Tensor, part: Sample, fill: Scalar) -> Tensor:
    """Return the pixels of one sample, with ``fill`` for those that do not exist."""
    batch, height, width, channels = image.shape
    pixels = gather(reshape(image, (batch * height * width, channels)), part.pixel)
    return where(expand_dims(part.inside, axis=-1), pixels, fill)


def scatter(dy: Tensor, parts: Sequence[Sample], image: Shape) -> Tensor:
    """Return the transpose of ``interpolate``: each pixel's share of ``dy``."""
    batch, height, width, channels = image
    pixels, shares = [], []
    for part in parts:
        inside = expand_dims(part.inside, axis=-1)
        share = where(inside, dy * _spread_to_channels(part.weight, dy.dtype), 0)
        shares.append(reshape(share, (-1, channels)) if channels else share)
        pixels.append(reshape(broadcast_to(part.pixel, dy.shape[:-1]), (-1, 1)))
    flat = scatter_nd(concat(pixels), concat(shares), (batch * height * width, channels))
    return reshape(flat, image)


def slopes(
    dy: Tensor, image: Tensor, parts: Sequence[Sample], fill: Scalar
) -> tuple[Tensor, Tensor]:
    """Return the derivatives of ``dy`` times the value by the place, along y and along x."""
    weights = [sum_(dy * astype(pick(image, part, fill), dy.dtype), axis=-1) for part in parts]
    pairs = list(zip(weights, parts, strict=True))
    along_y = (weight * astype(part.along_y, dy.dtype) for weight, part in pairs)
    along_x = (weight * astype(part.along_x, dy.dtype) for weight, part in pairs)
    return reduce(add, along_y), reduce(add, along_x)


def _lies_within(pixel: Tensor, length: int) -> Tensor:
    return logical_and(greater_equal(pixel, 0), less_equal(pixel, length - 1))


def _clip_index(pixel: Tensor, length: int) -> Tensor:
    return astype(minimum(maximum(pixel, 0), length - 1), dt.int32)


def _spread_to_channels(weight: Tensor, dtype: DType) -> Tensor:
    return expand_dims(astype(weight, dtype), axis=-1)
