"""Levels and bytes from arithmetic, channels from slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise.arithmetic import maximum, minimum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.unary import floor
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.image import pixels as ops
from tensorplug.ops.image.fill_modes import Arithmetic
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import expand_dims

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)

_BY_OPS = Arithmetic(floor, where)


@decompositions.of(ops.FROM_PIXELS)
def from_pixels(pixels: Tensor, *, num_channels: int) -> Tensor:
    return _select_channels(_compute_levels(pixels), num_channels, ops.OPAQUE)


@decompositions.of(ops.DRAW)
def draw(image: Tensor, *, options: float) -> Tensor:
    inside = image
    if image.dtype in dt.SIGNED:
        inside = maximum(inside, 0)
    if image.dtype in dt.INTEGER and image.dtype.itemsize > 1:
        inside = minimum(inside, ops.OPAQUE)
    alpha = int(ops.OPAQUE * options + 0.5)
    return astype(_select_channels(_compute_levels(inside), 4, alpha), dt.uint8)


def _compute_levels(x: Tensor) -> Tensor:
    """Return levels in int32."""
    if x.dtype is dt.bool_:
        return astype(x, dt.int32) * ops.OPAQUE
    if x.dtype in dt.INTEGER:
        return astype(x, dt.int32)
    inside = where(x > 0, minimum(x, 1), 0)  # NaN is not above 0
    return astype(ops.levels(inside, _BY_OPS), dt.int32)


def _select_channels(x: Tensor, count: int, alpha: int) -> Tensor:
    image = expand_dims(x, axis=-1) if x.ndim == 2 else x
    plane = (*image.shape[:2], 1)
    parts = [
        full(plane, alpha, dtype=image.dtype) if at is None else slice_(image, (0, 0, at), plane)
        for at in ops.CHANNELS[image.shape[2]][:count]
    ]
    return concat(parts, axis=2)
