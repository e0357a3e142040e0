"""Gray and two levels, and what the functions of tp.image refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RNG = np.random.default_rng(5)


def check(actual: Any, expected: Any, dtype: str = "float32", tolerance: float = 1e-6) -> None:
    wanted = np.asarray(expected, dtype)
    assert (actual.dtype.name, actual.shape) == (dtype, wanted.shape)
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=tolerance, atol=tolerance)


def shifted(right: float, down: float) -> list[list[float]]:
    return [[1, 0, -right, 0, 1, -down, 0, 0]]


BOXES = np.zeros((6, 4), np.float32)
SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def test_gray() -> None:
    rgb = RNG.uniform(0, 255, (2, 3, 3)).astype(np.float32)
    luma = rgb @ np.float32([0.2989, 0.5870, 0.1140])
    check(tp.image.rgb_to_grayscale(rgb), luma[..., None], tolerance=1e-5)
    check(tp.image.rgb_to_grayscale(np.full((2, 3), 255, "uint8")), [[254], [254]], "uint8")
    check(tp.image.grayscale_to_rgb(luma[..., None]), np.stack([luma] * 3, -1))
    check(tp.image.grayscale_to_rgb([[1], [2]]), [[1, 1, 1], [2, 2, 2]], "int32")


def otsu(levels: np.ndarray) -> int:
    """Return the first threshold of the largest variance between classes, tried one by one."""
    best, found = 0.0, -1
    for threshold in range(255):
        dark, bright = levels[levels <= threshold], levels[levels > threshold]
        if dark.size and bright.size:
            between = dark.size * bright.size * (dark.mean() - bright.mean()) ** 2
            if between > best * (1 + 1e-12):
                best, found = between, threshold
    return found


def test_thresholds() -> None:
    gray = np.arange(256).reshape(16, 16, 1)
    image = tp.image.threshold
    check(image(gray.astype("int32")), 255 * (gray > 127.5), "int32")
    check(image(gray.astype("float32"), "binary", True, 0.25), 255 * (gray <= 63.75), "int32")
    hills = np.where(RNG.random((16, 16, 1)) < 0.3, 200, 40) + gray // 8
    check(image(hills.astype("int32"), "otsu"), 255 * (hills > otsu(hills)), "int32")
    check(image(np.full((2, 2, 1), 9), "otsu"), np.full((2, 2, 1), 255), "int32")
    rgb = RNG.integers(0, 256, (5, 4, 3)).astype("int32")
    luma = rgb @ np.float32([0.2989, 0.5870, 0.1140])
    check(image(rgb), 255 * (luma > 127.5)[..., None], "int32")
    limit = otsu(np.round(luma).astype(int))
    check(image(rgb, "otsu", inverted=True), 255 * (luma <= limit)[..., None], "int32")


IMAGE = np.ones((1, 3, 3, 1), np.float32)
BAD = {  # error: call, what the message says
    ArgumentError: [
        (
            lambda: tp.image.resize_bilinear(IMAGE, (2, 2), True, True),
            "attribute 'half_pixel_centers': must be False where align_corners is True",
        ),
        (
            lambda: tp.image.center_crop(IMAGE, 2),
            "center_crop: size must be a pair of sizes, (height, width), got 2",
        ),
        (
            lambda: tp.image.random_crop(0, IMAGE, (2, 2)),
            "random_crop: key must come from tensorplug.random.key(seed), got the number 0",
        ),
        (
            lambda: tp.image.rotate_with_offset(IMAGE, 1.0, (1, 2)),
            "attribute 'fill_value': must have 1 numbers, one per channel, got 2",
        ),
        (
            lambda: tp.image.rotate_with_offset(IMAGE.astype("uint8"), 1.0, 256),
            "attribute 'fill_value': 256 does not fit into uint8",
        ),
        (
            lambda: tp.image.transform(IMAGE, shifted(0, 0), "cubic"),
            "attribute 'interpolation': must be one of 'nearest', 'bilinear', got 'cubic'",
        ),
        (
            lambda: tp.image.non_max_suppression(BOXES, SCORES, 1, 1.5),
            "attribute 'iou_threshold': must be a number from 0 to 1, got 1.5",
        ),
        (
            lambda: tp.image.non_max_suppression_padded(BOXES, SCORES, -1),
            "attribute 'max_output_size': must be at least 0, got -1",
        ),
        (
            lambda: tp.image.threshold(IMAGE[0], "triangle"),
            "threshold: method must be one of 'binary', 'otsu', got 'triangle'",
        ),
    ],
    ShapeError: [
        (
            lambda: tp.image.resize_nearest_neighbor(IMAGE[0, 0], (2, 2)),
            "ResizeNearestNeighbor(images=float32[3,1]): images must have rank 4",
        ),
        (
            lambda: tp.image.resize_bilinear(IMAGE[:, :0], (2, 2)),
            "images must not be empty, got 0 by 3 pixels",
        ),
        (
            lambda: tp.image.resize_bilinear(IMAGE, (2, -2)),
            "attribute 'size': size must not contain negative sizes, got (2, -2)",
        ),
        (
            lambda: tp.image.flip_left_right(IMAGE[0, 0]),
            "flip_left_right: image must have the shape [height, width, channels] or [batch,",
        ),
        (lambda: tp.image.flip_up_down(IMAGE[None]), "channels], got float32[1,1,3,3,1]"),
        (
            lambda: tp.image.center_crop(IMAGE, (2, -1)),
            "center_crop: size must not contain negative sizes, got (2, -1)",
        ),
        (
            lambda: tp.image.random_crop(tp.random.key(0), IMAGE, (2, 4)),
            "random_crop: size must be at most (3, 3), that of float32[1,3,3,1], got (2, 4)",
        ),
        (
            lambda: tp.image.transform(IMAGE, shifted(0, 0) * 2),
            "transforms must have shape [1, 8]",
        ),
        (
            lambda: tp.image.crop_and_resize(IMAGE, [[0, 0, 1]], [0], (2, 2)),
            "boxes must have shape [boxes, 4], with y1, x1, y2, x2 of each box",
        ),
        (lambda: tp.image.non_max_suppression(BOXES, SCORES[:2], 1), "scores must have shape [6]"),
        (
            lambda: tp.image.grayscale_to_rgb(np.ones((2, 2))),
            "image must have rank 2 or more and a last axis of length 1, got float64[2,2]",
        ),
        (
            lambda: tp.image.rgb_to_grayscale(np.ones(3)),
            "rgb_to_grayscale: image must have rank 2 or more and a last axis of length 3",
        ),
        (
            lambda: tp.image.threshold(IMAGE),
            "threshold: image must have rank 3, got float32[1,3,3,1]",
        ),
    ],
    DTypeError: [
        (
            lambda: tp.image.crop_and_resize(IMAGE, [[0.0, 0, 1, 1]], [0.0], (2, 2)),
            "input 'box_ind' is float32[1], but its dtype must be one of int16",
        ),
        (
            lambda: tp.image.threshold(IMAGE[0] > 0),
            "threshold: image must hold real numbers, got bool[3,3,1]",
        ),
    ],
}


test_bad_calls = refused(BAD)
