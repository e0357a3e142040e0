"""References for turned, mirrored and projected images, pixel by pixel in float64."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.case import Bounded, Relation
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array


def flip_left_right(image: Array) -> Array:
    """Column by column from the end."""
    out = np.empty_like(image)
    width = image.shape[2]
    for column in range(width):
        out[:, :, column] = image[:, :, width - 1 - column]
    return out


def rotate_with_offset(
    image: Array, *, radians: float, fill_value: Any = 0, center: Any = 0.5
) -> Array | Relation:
    """The pixel nearest to the rotated position; either one where rounding decides.

    At right angles, positions lie on the borders between pixels.
    """
    _, height, width, channels = image.shape
    center_x, center_y = center if isinstance(center, tuple) else (center, center)
    center_x, center_y = center_x * width, center_y * height
    right = (np.arange(width) - center_x)[None, :]
    down = (np.arange(height) - center_y)[:, None]
    column = right * math.cos(radians) - down * math.sin(radians) + center_x
    row = right * math.sin(radians) + down * math.cos(radians) + center_y
    listed = list(fill_value) if isinstance(fill_value, tuple) else [fill_value] * channels
    fill = np.array([*listed, 255][:channels]).astype(image.dtype)
    slack = _ROUNDING * (1 + height + width)
    items = [
        _picked(image, np.floor(row + 0.5 + dy), np.floor(column + 0.5 + dx), fill)
        for dy in (-slack, slack)
        for dx in (-slack, slack)
    ]
    if all(
        np.array_equal(array, items[0], equal_nan=kind_of(array.dtype) == "f") for array in items
    ):
        return items[0]

    def check(result: Array) -> Iterator[tuple[str, Array, Bounded]]:
        neither = ~np.any([_same(result, array) for array in items], axis=0)
        exact = np.zeros(result.shape)
        yield "pixels that are not among the nearest", neither.astype(float), Bounded(exact, exact)

    return Relation(check, items[0])


_ROUNDING: Final = 2.0**-20  # of positions, by size: kernels may compute them in float32


def _picked(image: Array, row: Array, column: Array, fill: Array) -> Array:
    """Return the pixels at whole positions, and ``fill`` where there are none."""
    _, height, width, _ = image.shape
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    if not inside.any():
        return np.broadcast_to(fill, image.shape).copy()
    at = np.where(inside, row, 0).astype(int), np.where(inside, column, 0).astype(int)
    return np.where(inside[None, :, :, None], image[:, at[0], at[1]], fill)


def _same(result: Array, other: Array) -> Array:
    if kind_of(result.dtype) != "f":
        return np.asarray(result == other)
    return np.asarray((result == other) | (np.isnan(result) & np.isnan(other)))


def transform(
    image: Array,
    transforms: Array,
    *,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: float = 0,
    output_shape: tuple[int, int] | None = None,
) -> Array | Bounded:
    """One pixel or four, at the transformed position."""
    batch, height, width, channels = image.shape
    size = output_shape or (height, width)
    x = image.astype(np.longdouble) if kind_of(image.dtype) == "f" else wide(image)
    value = np.full((batch, *size, channels), fill_value, x.dtype)
    for at in range(batch):
        row = transforms[at % len(transforms)].tolist()
        for i in range(size[0]):
            for j in range(size[1]):
                scale = row[6] * j + row[7] * i + 1
                if not scale or not all(map(math.isfinite, row)):
                    continue
                across = (row[0] * j + row[1] * i + row[2]) / scale
                down = (row[3] * j + row[4] * i + row[5]) / scale
                place = _mapped(down, height, fill_mode), _mapped(across, width, fill_mode)
                value[at, i, j] = _read(x[at], place, interpolation, fill_value)
    if kind_of(image.dtype) != "f" or interpolation == "nearest":
        return value.astype(image.dtype)
    largest = max(np.abs(x).max(initial=0, where=~np.isnan(x)), abs(fill_value))
    reach = float(np.abs(transforms[np.isfinite(transforms)]).max(initial=1)) * (sum(size) + 1)
    drift = 4 * epsilon(transforms) * min(reach, 1e4) * largest
    bound = 6 * epsilon(image) * largest + drift
    return Bounded(value, np.broadcast_to(bound, value.shape))


def _read(x: Array, place: tuple[float, float], interpolation: str, fill: float) -> Any:
    def pixel(row: int, column: int) -> Any:
        inside = 0 <= row < x.shape[0] and 0 <= column < x.shape[1]
        return x[row, column] if inside else np.full(x.shape[-1], fill, x.dtype)

    if interpolation == "nearest":
        return pixel(math.floor(place[0] + 0.5), math.floor(place[1] + 0.5))
    top, left = math.floor(place[0]), math.floor(place[1])
    down, across = place[0] - top, place[1] - left
    upper = (1 - across) * pixel(top, left) + across * pixel(top, left + 1)
    lower = (1 - across) * pixel(top + 1, left) + across * pixel(top + 1, left + 1)
    blended = (1 - down) * upper + down * lower
    return blended if x.dtype != object else np.array([int(number) for number in blended], object)


def _mapped(at: float, length: int, mode: str) -> float:
    if mode == "constant":
        return at
    if mode == "reflect":
        at = _reflected(at, length)
    elif mode == "wrap":
        at = _wrapped(at, length)
    return min(max(at, 0), length - 1)


def _reflected(at: float, length: int) -> float:
    if 0 <= at <= length - 1:
        return at
    if length == 1:
        return 0
    while at < 0 or at >= 2 * length:
        at += 2 * length if at < 0 else -2 * length
    return at if at < length else 2 * length - 1 - at


def _wrapped(at: float, length: int) -> float:
    if length == 1:
        return 0
    if at < 0:
        return at + length * (int(-at / (length - 1)) + 1)
    return at - length * int(at / (length - 1)) if at > length - 1 else at
