"""Resizing by any method against the definition: one new element, one old element at a time."""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

METHODS = ("nearest", "linear", "cubic", "lanczos3", "area")
COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
    *("align_corners", "asymmetric", "tf_crop_and_resize"),
)
ROI = (-0.1, 0.8)


def place(i, old, new, scale, coordinates):
    """Return the place of new element i on the old axis."""
    if coordinates == "align_corners":
        return i * (old - 1) / (new - 1) if new > 1 else 0.0
    if coordinates == "asymmetric":
        return i / scale
    if coordinates == "tf_crop_and_resize":
        start, end = ROI
        at = start + i * (end - start) / (new - 1) if new > 1 else (start + end) / 2
        return at * (old - 1)
    if coordinates == "pytorch_half_pixel" and new == 1:
        return 0.0
    at = (i + 0.5) / scale - 0.5
    if coordinates == "half_pixel_symmetric":
        middle = (new / 2) / scale - 0.5  # of the new axis, which goes to that of the old one
        at += (old - 1) / 2 - middle
    return at


def kernel(d, method, a):
    d = abs(d)
    if method == "linear":
        return max(0.0, 1 - d)
    if method == "lanczos3":
        if d == 0:
            return 1.0
        angle = math.pi * d
        return 3 * math.sin(angle) * math.sin(angle / 3) / angle**2 if d < 3 else 0.0
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def round_place(at, mode):
    low, part = math.floor(at), at - math.floor(at)
    if mode == "floor" or part == 0:
        return low
    if mode == "ceil":
        return low + 1
    return low + (part > 0.5 or (part == 0.5 and mode == "round_prefer_ceil"))


def resize_row(row, new, scale, how):
    """Resize a vector. ``how``: the keyword arguments of ``resize``."""
    old, out = len(row), np.zeros(new)
    method, coordinates = how.get("method", "linear"), how.get("coordinates", "half_pixel")
    wide = max(1 / scale, 1) if how.get("antialias") else 1
    for i in range(new):
        at = place(i, old, new, scale, coordinates)
        if coordinates == "tf_crop_and_resize" and not 0 <= at <= old - 1:
            out[i] = how.get("extrapolation_value", 0)
            continue
        if method == "nearest":
            number = round_place(at, how.get("nearest_mode", "round_prefer_floor"))
            out[i] = row[min(max(number, 0), old - 1)]
            continue
        reach = math.ceil(3 * wide + 1 / scale) + 2
        total = value = 0.0
        for j in range(math.floor(at) - reach, math.ceil(at) + reach + 1):
            if method == "area":
                low, high = at - 0.5 / scale, at + 0.5 / scale
                weight = max(0.0, min(j + 0.5, high) - max(j - 0.5, low))
            else:
                weight = kernel((j - at) / wide, method, how.get("cubic_coefficient", -0.75))
            if how.get("exclude_outside") and not 0 <= j < old:
                continue
            total += weight
            value += weight * row[min(max(j, 0), old - 1)]
        out[i] = value / total
    return out


def reference(x, axes, sizes, scales, how):
    out = np.asarray(x, np.float64)
    for axis, new, scale in zip(axes, sizes, scales, strict=True):
        out = np.apply_along_axis(resize_row, axis, out, new, scale, how)
    return out


def near(actual, expected, dtype="float64", eps=64):
    assert (actual.dtype.name, actual.shape) == (dtype, expected.shape)
    allowed = eps * np.finfo(dtype).eps
    np.testing.assert_allclose(actual.numpy(), expected, rtol=allowed, atol=allowed * 4)


X = np.random.default_rng(5).uniform(-3, 3, (2, 7, 5))
SIZES = [(7, 5), (14, 10), (3, 9), (1, 2), (11, 1), (2, 3)]


def list_options(method):
    if method == "nearest":
        modes = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        return [{"nearest_mode": mode} for mode in modes]
    widen = [{}] if method == "area" else [{}, {"antialias": True}]
    more = [{"cubic_coefficient": -0.5}] if method == "cubic" else []
    return [*widen, *({**option, "exclude_outside": True} for option in widen), *more]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("method", METHODS)
def test_sizes(method, coordinates):
    for option, sizes in product(list_options(method), SIZES):
        how = {"method": method, "coordinates": coordinates, **option}
        more = {}
        if coordinates == "tf_crop_and_resize":
            how["extrapolation_value"] = 2.5
            more["roi"] = [ROI, ROI]
        scales = [new / old for new, old in zip(sizes, X.shape[1:], strict=True)]
        wanted = reference(X, (1, 2), sizes, scales, how)
        if coordinates == "tf_crop_and_resize":  # outside along one axis is outside
            for axis, new in zip((1, 2), sizes, strict=True):
                old = X.shape[axis]
                places = [place(i, old, new, new / old, coordinates) for i in range(new)]
                for i, at in enumerate(places):
                    if not 0 <= at <= old - 1:
                        wanted[(slice(None),) * axis + (i,)] = 2.5
        near(tp.image.resize(X, sizes, axes=(1, 2), **how, **more), wanted)


@pytest.mark.parametrize("coordinates", COORDINATES[:-1])
@pytest.mark.parametrize("method", METHODS)
def test_scales(method, coordinates):
    for scales in ((2.0, 0.5), (0.61, 1.87), (1.0, 1.01)):
        how = {"method": method, "coordinates": coordinates}
        sizes = [math.floor(old * scale) for old, scale in zip((7, 5), scales, strict=True)]
        wanted = reference(X, (1, 2), sizes, scales, how)
        near(tp.image.resize(X, scale=scales, axes=(1, 2), **how), wanted)


def test_one_scale_and_any_axes():
    wanted = reference(X, (0, 2), (3, 7), (1.5, 1.5), {})
    near(tp.image.resize(X, scale=1.5, axes=(0, -1)), wanted)
    near(tp.image.resize(X, scale=np.float64(1.5), axes=[2, 0]), wanted)
    wanted = reference(X, (2, 0), (7, 3), (1.4, 1.5), {})
    near(tp.image.resize(X, (7, 3), axes=(2, 0)), wanted)
    wanted = reference(X, (2,), (3,), (0.6,), {"method": "cubic"})
    near(tp.image.resize(X, (3,), axes=2, method="cubic"), wanted)
    image = X[..., None]
    wanted = reference(image, (1, 2), (4, 4), (4 / 7, 4 / 5), {})
    near(tp.image.resize(image, (4, 4)), wanted)
    near(tp.image.resize(image[0], (4, 4)), wanted[0])


@pytest.mark.parametrize(
    ("policy", "size", "factor", "new"),
    [("not_larger", (9, 9), 9 / 7, (9, 6)), ("not_smaller", (9, 9), 9 / 5, (13, 9))],
)
def test_aspect_ratio(policy, size, factor, new):
    wanted = reference(X, (1, 2), new, (factor, factor), {})
    near(tp.image.resize(X, size, axes=(1, 2), keep_aspect_ratio_policy=policy), wanted)


def test_many_taps():
    """More than are gathered one by one."""
    x = np.random.default_rng(8).uniform(-1, 1, (2, 101, 2))
    how = {"method": "lanczos3", "antialias": True}
    wanted = reference(x, (1,), (3,), (3 / 101,), how)
    near(tp.image.resize(x, (3,), axes=(1,), **how), wanted)


def test_infinity_does_not_spread_to_weights_of_0():
    row = np.array([1.0, np.inf, 2.0, np.nan, 4.0])
    found = tp.image.resize(row, (9,), axes=(0,), coordinates="align_corners").numpy()
    np.testing.assert_array_equal(found, [1, np.inf, np.inf, np.inf, 2, np.nan, np.nan, np.nan, 4])


BAD = [
    ({"size": (2, 2), "scale": 2}, ArgumentError, "exactly one of size and scale must be given"),
    ({}, ArgumentError, "exactly one of size and scale must be given, got None and None"),
    ({"size": (2,)}, ShapeError, "size must have 2 numbers, one for each axis, got (2,)"),
    ({"size": (2, -1)}, ShapeError, "resize: size must not contain negative sizes"),
    ({"size": 2.5}, ArgumentError, "resize: size"),
    ({"scale": (1, 2, 3)}, ShapeError, "scale must have 2 numbers"),
    ({"scale": 0}, ArgumentError, "scale must be positive and finite, got 0"),
    ({"scale": "2"}, ArgumentError, "scale must be a real number, got '2'"),
    ({"size": (2, 2), "axes": (0, 0)}, ShapeError, "resize of float64[2,7,5]: axes"),
    ({"size": (2,), "axes": 3}, OutOfRangeError, "axes 3 is out of range for rank 3"),
    ({"size": (2, 2), "method": "bicubic"}, ArgumentError, "method must be one of 'nearest', 'l"),
    ({"size": (2, 2), "coordinates": "tf"}, ArgumentError, "coordinates must be one of 'half_p"),
    ({"size": (2, 2), "nearest_mode": "up"}, ArgumentError, "nearest_mode must be one of 'roun"),
    ({"size": (2, 2), "antialias": 1}, ArgumentError, "antialias must be True or False, got 1"),
    (
        {"size": (2, 2), "antialias": True, "method": "nearest"},
        ArgumentError,
        "antialias is not possible with method 'nearest'",
    ),
    ({"size": (2, 2), "roi": [(0, 1), (0, 1)]}, ArgumentError, "roi must be None with coordinate"),
    (
        {"size": (2, 2), "coordinates": "tf_crop_and_resize"},
        ArgumentError,
        "roi must be a list of 2 pairs (start, end), one for each axis, got None",
    ),
    (
        {"scale": 2, "keep_aspect_ratio_policy": "not_larger"},
        ArgumentError,
        "keep_aspect_ratio_policy 'not_larger' needs a size",
    ),
    ({"size": (2, 2), "cubic_coefficient": None}, ArgumentError, "coefficient must be a real nu"),
]


@pytest.mark.parametrize(("how", "error", "message"), BAD)
def test_bad_options(how, error, message):
    with pytest.raises(error, match=re.escape(message)):
        tp.image.resize(X, **how)


def test_bad_images():
    with pytest.raises(ShapeError, match=re.escape("images are float64[7,5], but without axes")):
        tp.image.resize(X[0], (2, 2))
    with pytest.raises(ShapeError, match="axis 0 is empty"):
        tp.image.resize(np.zeros((0, 3)), (2,), axes=(0,))
    with pytest.raises(DTypeError, match="resize: images must hold numbers, got string"):
        tp.image.resize(tp.asarray(["a"]), (2,), axes=(0,))
