"""Large images are resized by a loop: the same bits as by NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.algorithms import bilinear_taps
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
