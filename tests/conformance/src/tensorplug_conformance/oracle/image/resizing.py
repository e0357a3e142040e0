"""References for resizing, pixel by pixel, with TensorFlow.js's arithmetic of positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array

Size = tuple[int, int]
Neighbours = list[tuple[int, int, float]]  # lower pixel, upper pixel, weight of the upper one


def resize_bilinear(
    images: Array, *, size: Size, align_corners: bool = False, half_pixel_centers: bool = False
) -> Bounded:
    """A mean of four pixels."""
    rows, columns = _both(images.shape, size, align_corners, half_pixel_centers)
    x = wide(images)
    value = np.zeros((x.shape[0], *size, x.shape[3]), np.longdouble)
    largest = value.copy()
    for i, (top, bottom, down) in enumerate(rows):
        for j, (left, right, across) in enumerate(columns):
            corners = [x[:, r, c] for r in (top, bottom) for c in (left, right)]
            upper = corners[0] * (1 - across) + corners[1] * across
            lower = corners[2] * (1 - across) + corners[3] * across
            value[:, i, j] = upper * (1 - down) + lower * down
            largest[:, i, j] = np.max(np.abs(corners), axis=0)
    return Bounded(value, 6 * epsilon(images) * largest)


def resize_bilinear_grad(
    images: Array,
    dy: Array,
    *,
    size: Size | None = None,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Bounded:
    """Each of the four pixels gets its share."""
    size = size or (dy.shape[1], dy.shape[2])
    rows, columns = _both(images.shape, size, align_corners, half_pixel_centers)
    cotangent = wide(dy)
    value, terms = np.zeros((2, *images.shape), np.longdouble)
    for i, (top, bottom, down) in enumerate(rows):
        for j, (left, right, across) in enumerate(columns):
            for r, c, weight in (
                (top, left, (1 - down) * (1 - across)),
                (top, right, (1 - down) * across),
                (bottom, left, down * (1 - across)),
                (bottom, right, down * across),
            ):
                if weight:
                    value[:, r, c] += cotangent[:, i, j] * weight
                    terms[:, r, c] += np.abs(cotangent[:, i, j]) * weight
    return Bounded(value, 2 * epsilon(dy) * levels(size[0] * size[1]) * terms)


def resize_nearest_neighbor(
    images: Array, *, size: Size, align_corners: bool = False, half_pixel_centers: bool = False
) -> Array:
    """One pixel each."""
    rows = [
        _shown(i, images.shape[1], size[0], align_corners, half_pixel_centers)
        for i in range(size[0])
    ]
    columns = [
        _shown(j, images.shape[2], size[1], align_corners, half_pixel_centers)
        for j in range(size[1])
    ]
    value = np.zeros((images.shape[0], *size, images.shape[3]), images.dtype)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            value[:, i, j] = images[:, row, column]
    return value


def resize_nearest_neighbor_grad(
    images: Array,
    dy: Array,
    *,
    size: Size | None = None,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Bounded:
    """The pixel that is read gets all."""
    size = size or (dy.shape[1], dy.shape[2])
    numbered = np.arange(math.prod(images.shape[1:3])).reshape(1, *images.shape[1:3], 1)
    shown = resize_nearest_neighbor(
        numbered, size=size, align_corners=align_corners, half_pixel_centers=half_pixel_centers
    )[0, :, :, 0]
    cotangent = wide(dy)
    value, terms = np.zeros((2, *images.shape), np.longdouble)
    for (i, j), at in np.ndenumerate(shown):
        row, column = divmod(int(at), images.shape[2])
        value[:, row, column] += cotangent[:, i, j]
        terms[:, row, column] += np.abs(cotangent[:, i, j])
    return Bounded(value, epsilon(dy) * levels(shown.size) * terms)


def _both(
    shape: tuple[int, ...], size: Size, align_corners: bool, half_pixel_centers: bool
) -> tuple[Neighbours, Neighbours]:
    rows, columns = (
        [_neighbours(i, old, new, align_corners, half_pixel_centers) for i in range(new)]
        for old, new in zip(shape[1:3], size, strict=True)
    )
    return rows, columns


def _neighbours(
    i: int, old: int, new: int, align_corners: bool, half_pixel_centers: bool
) -> tuple[int, int, float]:
    aligned = align_corners and new > 1
    ratio = (old - 1) / (new - 1) if aligned else old / new
    at = ratio * (i + 0.5) - 0.5 if half_pixel_centers else ratio * i
    lower = max(0, math.floor(at))
    upper = min(old - 1, math.ceil(at))
    return (lower, upper, at - lower) if upper > lower else (lower, lower, 0.0)


def _shown(i: int, old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> int:
    aligned = align_corners and new > 1
    ratio = (old - 1) / (new - 1) if aligned else old / new
    at = ratio * (i + 0.5) if half_pixel_centers else ratio * i
    return min(old - 1, math.floor(at + 0.5) if align_corners else math.floor(at))
