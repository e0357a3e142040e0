"""Crops by gathers at computed places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.image import cropping as ops
from tensorplug.ops.image import pixel_sampling
from tensorplug.ops.image.crop_places import check_existing, places, samples_of
from tensorplug.ops.movement import expand_dims, reshape

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.CROP_AND_RESIZE)
def crop_and_resize(
    image: Tensor,
    boxes: Tensor,
    box_ind: Tensor,
    *,
    crop_size: ops.Pair,
    method: str,
    extrapolation_value: float,
) -> Tensor:
    points = places(image.shape, boxes, crop_size)
    parts = samples_of(image.shape, box_ind, points, method)
    work = pixel_sampling.choose_dtype(image.dtype)
    values = astype(pixel_sampling.interpolate(image, parts, 0, work), image.dtype)
    cropped = where(expand_dims(points.inside, axis=-1), values, extrapolation_value)
    real = check_existing(box_ind, image.shape[0])
    return where(reshape(real, (-1, 1, 1, 1)), cropped, 0)
