"""References for images as levels and bytes: pixel by pixel, rounding exactly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def from_pixels(pixels: Array, *, num_channels: int = 3) -> Array:
    """Levels of red, green, blue and alpha."""
    rgba = _rgba(pixels, 255, cut=False)
    return np.array(rgba, np.int32).reshape(*pixels.shape[:2], 4)[:, :, :num_channels]


def draw(image: Array, *, options: dict[str, Any] | None = None) -> Array:
    """Bytes of red, green, blue and alpha."""
    alpha = (options or {}).get("image_options", {}).get("alpha", 1)
    rgba = _rgba(image, math.floor(255 * alpha + 0.5), cut=True)
    return np.array(rgba, np.uint8).reshape(*image.shape[:2], 4)


def _rgba(image: Array, opaque: int, *, cut: bool) -> list[list[int]]:
    channels = image.shape[2] if image.ndim == 3 else 1
    items = []
    for pixel in image.reshape(-1, channels).tolist():
        levels = [_level(value, cut=cut) for value in pixel]
        color = levels[:3] if channels > 2 else levels[:1] * 3
        items.append([*color, levels[-1] if channels in (2, 4) else opaque])
    return items


def _level(value: float, *, cut: bool) -> int:
    if isinstance(value, bool):
        return 255 * value
    if isinstance(value, int):
        return min(max(value, 0), 255) if cut else value
    if math.isnan(value):
        return 0
    part, whole = min(max(value, 0.0), 1.0).as_integer_ratio()
    return (510 * part + whole) // (2 * whole)
