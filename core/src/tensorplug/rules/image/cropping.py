"""Gradients of crops: to the image's pixels, and through the sampled places to the boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.creation import asarray, zeros
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import logical_and
from tensorplug.ops.image import cropping as ops
from tensorplug.ops.image import pixel_sampling
from tensorplug.ops.image.crop_places import (
    Places,
    check_existing,
    compute_shares,
    places,
    samples_of,
    sloped_samples_of,
)
from tensorplug.ops.joining import stack
from tensorplug.ops.movement import expand_dims, reshape
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.CROP_AND_RESIZE, "box_ind", because="whole numbers")


@rules.vjp(ops.CROP_AND_RESIZE, "image")
def image(
    dy: Tensor,
    image_type: TensorType,
    boxes: Tensor,
    box_ind: Tensor,
    crop_size: ops.Pair,
    method: str,
) -> Tensor:
    shape = image_type.shape
    if not dy.size:
        return zeros(shape, dtype=dy.dtype)
    sampled = places(shape, boxes, crop_size)
    parts = samples_of(shape, box_ind, sampled, method)
    return pixel_sampling.scatter(_mask_unread(dy, box_ind, sampled, shape[0]), parts, shape)


@rules.vjp(ops.CROP_AND_RESIZE, "boxes")
def boxes(
    dy: Tensor, image: Tensor, boxes: Tensor, box_ind: Tensor, crop_size: ops.Pair, method: str
) -> Tensor:
    if method == "nearest" or not dy.size:
        return zeros(boxes.shape, dtype=boxes.dtype)
    sampled = places(image.shape, boxes, crop_size)
    parts = sloped_samples_of(image.shape, box_ind, sampled)
    inside_dy = _mask_unread(dy, box_ind, sampled, image.shape[0])
    along_y, along_x = pixel_sampling.slopes(inside_dy, image, parts, 0)
    y1, y2 = _route_to_edges(sum_(along_y, axis=2), image.shape[1])
    x1, x2 = _route_to_edges(sum_(along_x, axis=1), image.shape[2])
    return astype(stack((y1, x1, y2, x2), axis=1), boxes.dtype)


def _mask_unread(dy: Tensor, box_ind: Tensor, sampled: Places, batch: int) -> Tensor:
    """Return dy, but 0 where no pixel was read."""
    real = reshape(check_existing(box_ind, batch), (-1, 1, 1))
    return where(expand_dims(logical_and(sampled.inside, real), axis=-1), dy, 0)


def _route_to_edges(cotangent: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return the cotangents of the boxes' first and last edges from those of [boxes, places]."""
    first, last = (
        sum_(cotangent * asarray(share, dtype=cotangent.dtype), axis=1)
        for share in compute_shares(cotangent.shape[1], length)
    )
    return first, last
