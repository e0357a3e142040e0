"""Images: good calls of tensorplug.image, and bad ones: data of test_bad_input."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

IMAGE = np.ones((1, 5, 5, 3), np.float32)
BOXES = np.array([[0, 0, 1, 1]], np.float32)
ONE = np.ones((1,), np.float32)
FIRST = np.zeros((1,), np.int32)
EIGHT = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], np.float32)

CALLS: dict[str, list[Any]] = {  # a good value for each tensor, and the other arguments
    "center_crop": [[IMAGE], ((2, 2),)],
    "crop_and_resize": [[IMAGE, BOXES, FIRST], ((2, 2),)],
    "draw": [[IMAGE[0]], ()],
    "flip_left_right": [[IMAGE], ()],
    "flip_up_down": [[IMAGE], ()],
    "from_pixels": [[IMAGE[0].astype(np.uint8)], ()],
    "grayscale_to_rgb": [[IMAGE[..., :1]], ()],
    "grid_sample": [[IMAGE, np.zeros((1, 4, 2), np.float32)], ()],
    "non_max_suppression": [[BOXES, ONE], (1,)],
    "non_max_suppression_padded": [[BOXES, ONE], (1,)],
    "non_max_suppression_with_score": [[BOXES, ONE], (1,)],
    "resize": [[IMAGE], ((2, 2),)],
    "resize_bilinear": [[IMAGE], ((2, 2),)],
    "resize_nearest_neighbor": [[IMAGE], ((2, 2),)],
    "rgb_to_grayscale": [[IMAGE], ()],
    "rotate_with_offset": [[IMAGE], (0.5,)],
    "threshold": [[IMAGE[0]], ()],
    "to_pixels": [[IMAGE[0]], ()],
    "transform": [[IMAGE, EIGHT], ()],
}
KERNELS = {  # where the kernel's name in messages is not the function's in capitals
    "non_max_suppression": "NonMaxSuppressionV3",
    "non_max_suppression_padded": "NonMaxSuppressionV4",
    "non_max_suppression_with_score": "NonMaxSuppressionV5",
    "to_pixels": "Draw",
}
TAKE_STRINGS = {"center_crop", "flip_up_down", "grayscale_to_rgb"}  # they move elements unread

CASES = {  # error: call, what the message says
    ArgumentError: [
        (
            lambda: tp.image.crop_and_resize(IMAGE, BOXES, FIRST, 5),
            "attribute 'crop_size': must be a pair of sizes, (height, width), got 5",
        ),
        (
            lambda: tp.image.crop_and_resize(IMAGE, BOXES, FIRST, (2, 2), "cubic"),
            "attribute 'method': must be one of 'bilinear', 'nearest', got 'cubic'",
        ),
        (
            lambda: tp.image.draw(IMAGE[0] * 2),
            "draw: levels of float32 must lie in [0, 1], got 2.0 to 2.0",
        ),
        (
            lambda: tp.image.draw(IMAGE[0], alpha=np.ones(2)),
            "alpha must be a number from 0 to 1, got array",
        ),
        (
            lambda: tp.image.from_pixels(IMAGE[0].astype(np.uint8), 0),
            "attribute 'num_channels': must be at least 1, got 0",
        ),
        (
            lambda: tp.image.non_max_suppression(BOXES, ONE, -1),
            "attribute 'max_output_size': must be at least 0, got -1",
        ),
        (
            lambda: tp.image.non_max_suppression(BOXES, ONE, 1, 1.5),
            "attribute 'iou_threshold': must be a number from 0 to 1, got 1.5",
        ),
        (
            lambda: tp.image.resize_bilinear(IMAGE, (1, 2, 3)),
            "must be a pair of sizes, (height, width), got (1, 2, 3)",
        ),
        (
            lambda: tp.image.rotate_with_offset(IMAGE, np.inf),
            "attribute 'radians': must be a finite number, got inf",
        ),
        (
            lambda: tp.image.threshold(IMAGE[0], "mean"),
            "threshold: method must be one of 'binary', 'otsu', got 'mean'",
        ),
        (
            lambda: tp.image.threshold(IMAGE[0], thresh_value=[0.2, 0.5]),
            "threshold: thresh_value must be a number from 0 to 1, got [0.2, 0.5]",
        ),
        (
            lambda: tp.image.threshold(IMAGE[0], thresh_value=128),
            "threshold: thresh_value must be a number from 0 to 1, got 128",
        ),
        (
            lambda: tp.image.threshold(IMAGE[0], "binary", "no"),
            "threshold: inverted must be True or False, got 'no'",
        ),
    ],
    ShapeError: [
        (
            lambda: tp.image.crop_and_resize(IMAGE, BOXES, FIRST, (-1, 2)),
            "attribute 'crop_size': size must not contain negative sizes",
        ),
        (
            lambda: tp.image.crop_and_resize(IMAGE, BOXES[[0, 0]], FIRST, (2, 2)),
            "box_ind must have shape [2]",
        ),
        (
            lambda: tp.image.draw(ONE),
            "image must have shape [height, width] or [height, width, 1, 3 or 4]",
        ),
        (
            lambda: tp.image.grayscale_to_rgb(IMAGE),
            "image must have rank 2 or more and a last axis of length 1, got float32[1,5,5,3]",
        ),
        (
            lambda: tp.image.non_max_suppression_with_score(BOXES, ONE[[0, 0]], 1),
            "scores must have shape [1]",
        ),
        (
            lambda: tp.image.transform(IMAGE, np.ones((1, 9), np.float32)),
            "transforms must have shape [1, 8]",
        ),
        (
            lambda: tp.image.transform(IMAGE[[0, 0]], np.ones((3, 8), np.float32)),
            "transforms must have shape [1, 8] or [2, 8]",
        ),
    ],
    DTypeError: [
        (
            lambda: tp.image.crop_and_resize(IMAGE, BOXES, ONE, (2, 2)),
            "input 'box_ind' is float32[1], but its dtype must be",
        ),
        (
            lambda: tp.image.rgb_to_grayscale(IMAGE * 1j),
            "rgb_to_grayscale: image must hold real numbers, got complex64[1,5,5,3]",
        ),
    ],
}
