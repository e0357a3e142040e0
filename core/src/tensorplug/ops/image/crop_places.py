"""Places of a crop's pixels in its image, in primitive ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import greater_equal, less, less_equal, logical_and
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.image import pixel_sampling
from tensorplug.ops.kinds import widen_half
from tensorplug.ops.movement import reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Places:
    """The rows ``y`` [boxes, height, 1] and columns ``x`` [boxes, 1, width] of crops.

    ``inside`` [boxes, height, width]: whether they lie in the image; places outside are 0.
    """

    y: Tensor
    x: Tensor
    inside: Tensor


def places(image: Shape, boxes: Tensor, crop_size: Pair) -> Places:
    """Return the places of crops of ``crop_size`` in images of shape [batch, h, w, channels]."""
    count = boxes.shape[0]
    corners = widen_half(boxes)
    y1, x1, y2, x2 = (slice_(corners, (0, at), (count, 1)) for at in range(4))
    y, in_height = _check_inside(_interpolate_places(y1, y2, image[1], crop_size[0]), image[1])
    x, in_width = _check_inside(_interpolate_places(x1, x2, image[2], crop_size[1]), image[2])
    tall, broad = (count, crop_size[0], 1), (count, 1, crop_size[1])
    inside = logical_and(reshape(in_height, tall), reshape(in_width, broad))
    return Places(reshape(y, tall), reshape(x, broad), inside)


def compute_shares(places: int, length: int) -> tuple[list[float], list[float]]:
    """Return the derivatives of each place by a box's first and last edge, in pixels."""
    if places == 1:
        return [(length - 1) / 2], [(length - 1) / 2]
    last = [(length - 1) * at / (places - 1) for at in range(places)]
    return last[::-1], last


def check_existing(box_ind: Tensor, batch: int) -> Tensor:
    """Return for each box whether its image exists."""
    return logical_and(greater_equal(box_ind, 0), less(box_ind, batch))


def samples_of(
    image: Shape, box_ind: Tensor, sampled: Places, method: str
) -> list[pixel_sampling.Sample]:
    """Return the samples of the crops' values."""
    if method == "nearest":
        rows, columns = pixel_sampling.nearest(sampled.y), pixel_sampling.nearest(sampled.x)
    else:
        rows = pixel_sampling.linear(sampled.y, closed=True)
        columns = pixel_sampling.linear(sampled.x, closed=True)
    return _list_samples(image, box_ind, rows, columns)


def sloped_samples_of(
    image: Shape, box_ind: Tensor, sampled: Places
) -> list[pixel_sampling.Sample]:
    """Return the samples of the slopes of the crops' values, for the bilinear method."""
    rows = pixel_sampling.between(sampled.y, image[1])
    columns = pixel_sampling.between(sampled.x, image[2])
    return _list_samples(image, box_ind, rows, columns)


def _list_samples(
    image: Shape, box_ind: Tensor, rows: pixel_sampling.Taps, columns: pixel_sampling.Taps
) -> list[pixel_sampling.Sample]:
    batch, height, width, _ = image
    which = astype(where(check_existing(box_ind, batch), box_ind, 0), dt.int32)
    first = reshape(which * (height * width), (box_ind.shape[0], 1, 1))
    return pixel_sampling.samples(image, first, rows, columns)


def _interpolate_places(low: Tensor, high: Tensor, length: int, places: int) -> Tensor:
    """Return the places from ``low`` to ``high``, in pixels.

    Both ends count in whole steps, so that places on the image's edge are exact.
    """
    first, last = low * (length - 1), high * (length - 1)
    if places == 1:
        return (first + last) * 0.5
    steps = reshape(arange(places, dtype=low.dtype), (1, places))
    return (first * (places - 1 - steps) + last * steps) / (places - 1)


def _check_inside(at: Tensor, length: int) -> tuple[Tensor, Tensor]:
    inside = logical_and(greater_equal(at, 0), less_equal(at, length - 1))
    return where(inside, at, 0), inside
