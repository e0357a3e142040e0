"""Gradients of rotated, mirrored and projected images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import asarray, zeros
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.image import fill_modes, pixel_sampling
from tensorplug.ops.image import warping as ops
from tensorplug.ops.image.projections import BY_OPS, project, samples_of, sloped_samples_of
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.joining import stack
from tensorplug.ops.movement import expand_dims, permute_dims, reshape
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(ops.FLIP_LEFT_RIGHT, image=lambda dy: dispatch(ops.FLIP_LEFT_RIGHT, dy))


@rules.vjp(ops.ROTATE_WITH_OFFSET, "image")
def rotate_with_offset(dy: Tensor, radians: float, center: tuple[float, float]) -> Tensor:
    batch, height, width, channels = dy.shape
    pixel, inside = ops.rotation_sources(height, width, radians, center)
    read = inside.nonzero()[0].astype("int32")
    rows = permute_dims(reshape(dy, (batch, height * width, channels)), (1, 0, 2))
    pixels = asarray(pixel[read].reshape(-1, 1))
    back = scatter_nd(pixels, rows[asarray(read)], (height * width, batch, channels))
    return reshape(permute_dims(back, (1, 0, 2)), dy.shape)


@rules.vjp(ops.TRANSFORM, "image")
def image(
    dy: Tensor, image_type: TensorType, transforms: Tensor, interpolation: str, fill_mode: str
) -> Tensor:
    if not dy.size:
        return zeros(image_type.shape, dtype=dy.dtype)
    projection = project(transforms, (dy.shape[1], dy.shape[2]))
    parts = samples_of(image_type.shape, projection, interpolation, fill_mode)
    finite_dy = where(expand_dims(projection.finite, axis=-1), dy, 0)
    return pixel_sampling.scatter(finite_dy, parts, image_type.shape)


@rules.vjp(ops.TRANSFORM, "transforms")
def transforms(
    dy: Tensor,
    image: Tensor,
    transforms: Tensor,
    interpolation: str,
    fill_mode: str,
    fill_value: Scalar,
) -> Tensor:
    if interpolation == "nearest" or not dy.size:
        return zeros(transforms.shape, dtype=transforms.dtype)
    projection = project(transforms, (dy.shape[1], dy.shape[2]))
    parts = sloped_samples_of(image.shape, projection, fill_mode)
    finite_dy = where(expand_dims(projection.finite, axis=-1), dy, 0)
    along_y, along_x = pixel_sampling.slopes(finite_dy, image, parts, fill_value)
    scale = where(projection.finite, projection.scale, 1)
    y, x = (
        astype(slope, place.dtype) * fill_modes.slope(place, length, fill_mode, BY_OPS) / scale
        for slope, place, length in (
            (along_y, projection.y, image.shape[1]),
            (along_x, projection.x, image.shape[2]),
        )
    )
    both = -(x * projection.x + y * projection.y)
    columns, rows = projection.columns, projection.rows
    cotangents = (x * columns, x * rows, x, y * columns, y * rows, y, both * columns, both * rows)
    gathered = stack([sum_(part, axis=(1, 2)) for part in cotangents], axis=1)
    return astype(gathered, transforms.dtype)
