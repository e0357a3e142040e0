"""Rotated, mirrored and projected images, by gathers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.creation import asarray, zeros
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.image import pixel_sampling
from tensorplug.ops.image import warping as ops
from tensorplug.ops.image.projections import project, samples_of
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import expand_dims, reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)
decompositions.of(ops.FLIP_LEFT_RIGHT)(
    lambda image: gather(image, arange(image.shape[2] - 1, -1, -1), axis=2)
)


@decompositions.of(ops.ROTATE_WITH_OFFSET)
def rotate_with_offset(
    image: Tensor, *, radians: float, fill_value: tuple[float, ...], center: tuple[float, float]
) -> Tensor:
    if not image.size:
        return image
    batch, height, width, channels = image.shape
    pixel, inside = ops.rotation_sources(height, width, radians, center)
    rows = reshape(image, (batch, height * width, channels))
    fill = asarray(fill_value, dtype=image.dtype)
    turned = where(asarray(inside.reshape(-1, 1)), gather(rows, asarray(pixel), axis=1), fill)
    return reshape(turned, image.shape)


@decompositions.of(ops.TRANSFORM)
def transform(
    image: Tensor,
    transforms: Tensor,
    *,
    interpolation: str,
    fill_mode: str,
    fill_value: Scalar,
    out: TensorType,
) -> Tensor:
    if not out.size:
        return zeros(out.shape, dtype=out.dtype)
    points = project(transforms, (out.shape[1], out.shape[2]))
    parts = samples_of(image.shape, points, interpolation, fill_mode)
    if interpolation == "nearest":
        values = pixel_sampling.pick(image, parts[0], fill_value)
    else:
        work = pixel_sampling.choose_dtype(image.dtype)
        summed = pixel_sampling.interpolate(image, parts, fill_value, work)
        values = astype(summed, image.dtype)
    return where(expand_dims(points.finite, axis=-1), values, fill_value)
