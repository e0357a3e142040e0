"""Large images are resized by a loop: the same bits as by NumPy, and the formula's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.algorithms import bilinear_taps
from tensorplug.plugin import specs
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import resizing

pytestmark = pytest.mark.usefixtures("loops")

SHAPES = [  # images, size: of one channel, a few, a vector and more; growing and shrinking
    ((2, 40, 50, 1), (150, 160)),
    ((3, 70, 90, 3), (65, 131)),
    ((2, 60, 60, 15), (41, 70)),
    ((1, 30, 40, 16), (60, 50)),
    ((2, 20, 30, 37), (33, 31)),
    ((2, 300, 300, 1), (150, 120)),
]
GRIDS = [(False, False), (True, False), (False, True)]  # align_corners, half_pixel_centers


def positions(old, new, align_corners, half_pixel_centers):
    """Return where each new pixel lies on the old axis."""
    places = np.arange(new)
    if half_pixel_centers:
        return np.clip((places + 0.5) * old / new - 0.5, 0, old - 1)
    if align_corners:
        return places * (old - 1) / (new - 1)
    return np.minimum(places * old / new, old - 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_ramps(call, shape, size, grid, dtype):
    """Blends reproduce a function that is linear along each axis."""
    n, height, width, channels = shape
    slopes = 1 + np.arange(channels)
    image = np.arange(n)[:, None, None, None] * 3.0

    def ramp(y, x):
        return image + y[:, None, None] * 2 - x[:, None] * slopes + 5

    x = ramp(np.arange(height), np.arange(width)).astype(dtype)
    align, half = grid
    found = call(specs.RESIZE_BILINEAR, x, size=size, align_corners=align, half_pixel_centers=half)
    expected = ramp(positions(height, size[0], *grid), positions(width, size[1], *grid))
    assert (found.dtype, found.shape) == (np.dtype(dtype), expected.shape)
    bound = 8 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_same_bits_as_numpy(call, monkeypatch, shape, size, dtype):
    """With infinities and NaN, on one thread and on several."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    x.reshape(-1)[rng.integers(0, x.size, 9)] = np.inf, -np.inf, np.nan, *[-0.0] * 6
    for axis in (1, 2):
        taps = bilinear_taps(
            shape[axis], size[axis - 1], align_corners=False, half_pixel_centers=True
        )
        lower, upper, fraction = taps.lower, taps.upper, taps.fraction.astype(dtype)
        along = [-1 if other == axis else 1 for other in range(4)]
        below, above = x.take(lower, axis=axis), x.take(upper, axis=axis)
        with np.errstate(all="ignore"):
            expected = (above - below) * fraction.reshape(along) + below
        after = math.prod(shape[axis + 1 :])
        for limit in (0, 1 << 60):
            monkeypatch.setattr(resizing, "_SHARED", {True: limit, False: limit})
            found = resizing.blender(taps, axis, after, x.dtype, 1 << 20)(x)
            assert (found.dtype, found.shape) == (x.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(
                np.signbit(found)[numbers], np.signbit(expected)[numbers]
            )


def test_threads_share_rows(monkeypatch):
    seen, run = [], parallel.in_parts

    def counted(work, count, *, shared):
        seen.append((count, shared))
        run(work, count, shared=shared)

    monkeypatch.setattr(parallel, "in_parts", counted)
    taps = bilinear_taps(300, 600, align_corners=False, half_pixel_centers=True)
    x = np.ones((2, 300, 1500, 3), np.float32)
    for axis in (1, 2):
        resizing.blender(taps, axis, math.prod(x.shape[axis + 1 :]), x.dtype, 1 << 20)(x)
    assert seen == [(2 * 600, True), (2 * 300, True)]


def test_where_there_is_no_loop(monkeypatch):
    taps = bilinear_taps(30, 60, align_corners=False, half_pixel_centers=True)
    assert resizing.blender(taps, 1, 90, np.dtype(np.float16), 1 << 20) is None
    monkeypatch.setenv(JIT, "0")
    assert resizing.blender(taps, 1, 90, np.dtype(np.float32), 1 << 20) is None
