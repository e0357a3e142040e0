"""Reference for crops, position by position."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def crop_and_resize(
    image: Array,
    boxes: Array,
    box_ind: Array,
    *,
    crop_size: tuple[int, int],
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Bounded:
    """A mean of four pixels, or one of them, of the image that a box belongs to."""
    x = wide(image)
    value = np.full((len(boxes), *crop_size, x.shape[3]), extrapolation_value, np.longdouble)
    bound = np.abs(value) * epsilon(image)
    largest = np.abs(x).max(initial=0, where=~np.isnan(x))
    # A position may be off by some ulp, and a value follows it.
    drift = 8 * max(image.shape[1:3]) * epsilon(boxes) * largest
    for at, ((y1, x1, y2, x2), which) in enumerate(
        zip(boxes.tolist(), box_ind.tolist(), strict=True)
    ):
        if not 0 <= which < len(x):
            value[at] = bound[at] = 0
            continue
        for i in range(crop_size[0]):
            for j in range(crop_size[1]):
                row = _place(y1, y2, i, crop_size[0], image.shape[1])
                column = _place(x1, x2, j, crop_size[1], image.shape[2])
                if row is None or column is None:
                    continue
                if method == "nearest":
                    value[at, i, j] = x[which, _round(row), _round(column)]
                    bound[at, i, j] = 0
                else:
                    value[at, i, j] = _blend(x[which], row, column)
                    bound[at, i, j] = 6 * epsilon(image) * largest + drift
    return Bounded(value, bound)


def _place(low: float, high: float, at: int, count: int, length: int) -> float | None:
    if count > 1:
        place = low * (length - 1) + (high - low) * at * (length - 1) / (count - 1)
    else:
        place = 0.5 * (low + high) * (length - 1)
    return place if 0 <= place <= length - 1 else None


def _round(place: float) -> int:
    return math.floor(place + 0.5)


def _blend(x: Array, row: float, column: float) -> Array:
    top, left = math.floor(row), math.floor(column)
    total = np.zeros(x.shape[-1], np.longdouble)
    for r, down in ((top, 1 - (row - top)), (top + 1, row - top)):
        for c, across in ((left, 1 - (column - left)), (left + 1, column - left)):
            if down and across:
                total = total + x[r, c] * down * across
    return total
