"""Images: sizes, boxes, turns and projections, suppression, levels, pictures."""

from __future__ import annotations

from tensorplug.ops.image.cropping import crop_and_resize
from tensorplug.ops.image.pixels import draw, from_pixels, to_pixels
from tensorplug.ops.image.resizing import resize_bilinear, resize_nearest_neighbor
from tensorplug.ops.image.suppression import (
    non_max_suppression,
    non_max_suppression_padded,
    non_max_suppression_with_score,
)
from tensorplug.ops.image.thresholding import grayscale_to_rgb, rgb_to_grayscale, threshold
from tensorplug.ops.image.warping import flip_left_right, rotate_with_offset, transform

__all__ = [
    "crop_and_resize",
    "draw",
    "flip_left_right",
    "from_pixels",
    "grayscale_to_rgb",
    "non_max_suppression",
    "non_max_suppression_padded",
    "non_max_suppression_with_score",
    "resize_bilinear",
    "resize_nearest_neighbor",
    "rgb_to_grayscale",
    "rotate_with_offset",
    "threshold",
    "to_pixels",
    "transform",
]
