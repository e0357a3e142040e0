"""Max pooling and its gradient against loops over every window."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops.nn.convolution import pooling as ops
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.windows import tiles

REAL = sorted(dtype.name for dtype in dt.REAL - dt.WIDENED)
FLOATS = ["float16", "float32", "float64"]
CASES = [  # x, window, strides, pad, rounding
    ((1, 4, 4, 1), 2, 2, "valid", None),
    ((2, 5, 7, 3), (3, 2), (2, 1), "same", None),
    ((1, 5, 5, 2), 3, 1, "same", None),
    ((1, 5, 5, 1), 2, 2, 1, "floor"),
    ((1, 5, 5, 1), 2, 2, 0, "ceil"),
    ((1, 4, 6, 2), (2, 3), 1, ((0, 0), (1, 0), (0, 2), (0, 0)), None),
    ((2, 3, 3, 1), 1, 1, "valid", None),
    ((3, 5, 9, 3), (2, 3), (2, 3), "valid", None),
    ((2, 4, 6, 16), (1, 2), (1, 2), "valid", None),
    ((2, 4, 6, 2), (2, 1), (2, 1), "valid", None),
    ((0, 4, 4, 1), 2, 2, "valid", None),
    ((1, 4, 4, 0), 2, 2, "valid", None),
]


def windows(shape, window, strides, pad, rounding):
    """Yield each output position with the input positions under it, in row-major order."""
    taps = window if isinstance(window, tuple) else (window, window)
    steps = strides if isinstance(strides, tuple) else (strides, strides)
    before, counts = [], []
    for k, (size, reach, step) in enumerate(zip(shape[1:3], taps, steps, strict=True)):
        if pad == "same":
            count = math.ceil(size / step)
            low = max((count - 1) * step + reach - size, 0) // 2
        else:
            low, high = (
                (0, 0) if pad == "valid" else (pad, pad) if isinstance(pad, int) else pad[1 + k]
            )
            free = (size + low + high - reach) / step
            count = (math.ceil(free) if rounding == "ceil" else math.floor(free)) + 1
        before.append(low)
        counts.append(count)
    result = []
    for row, column in np.ndindex(*counts):
        inside = []
        for i, j in np.ndindex(*taps):
            y, z = row * steps[0] + i - before[0], column * steps[1] + j - before[1]
            if 0 <= y < shape[1] and 0 <= z < shape[2]:
                inside.append((y, z))
        result.append(((row, column), inside))
    return result, tuple(counts)


def first_largest(values):
    """Return the place of the first NaN, else of the first largest."""
    for place, value in enumerate(values):
        if math.isnan(value):
            return place
    return values.index(max(values))


def sample(shape, dtype):
    rng = np.random.default_rng(14)
    if dtype in FLOATS:
        pool, odds = (
            [0.0, 1.0, -2.0, math.inf, -math.inf, math.nan],
            [0.3, 0.2, 0.2, 0.1, 0.15, 0.05],
        )
        return rng.choice(pool, shape, p=odds).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.choice(np.array([limits.min, limits.max, 1], dtype), shape)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(("shape", "window", "strides", "pad", "rounding"), CASES)
def test_max_pool(call, near, dtype, shape, window, strides, pad, rounding):
    x = sample(shape, dtype)
    found, counts = windows(shape, window, strides, pad, rounding)
    expected = np.empty((shape[0], *counts, shape[3]), dtype)
    for batch, channel in np.ndindex(shape[0], shape[3]):
        for (row, column), inside in found:
            values = [x[batch, y, z, channel].item() for y, z in inside]
            expected[batch, row, column, channel] = values[first_largest(values)]
    result = call(
        ops.MAX_POOL, x, filter_size=window, strides=strides, pad=pad, dim_rounding_mode=rounding
    )
    near(result, expected, dtype, zeros=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "window", "strides", "pad", "rounding"), CASES)
def test_max_pool_grad(call, near, dtype, shape, window, strides, pad, rounding):
    x = sample(shape, dtype)
    found, counts = windows(shape, window, strides, pad, rounding)
    dy = np.arange(1.0, 1 + shape[0] * counts[0] * counts[1] * shape[3])
    dy = dy.reshape(shape[0], *counts, shape[3]).astype(dtype)
    dy.flat[:1] = math.inf  # which must not reach the elements that lost
    expected = np.zeros(shape)
    output = np.empty(dy.shape, dtype)
    for batch, channel in np.ndindex(shape[0], shape[3]):
        for (row, column), inside in found:
            values = [x[batch, y, z, channel].item() for y, z in inside]
            place = first_largest(values)
            output[batch, row, column, channel] = values[place]
            expected[(batch, *inside[place], channel)] += dy[batch, row, column, channel]
    result = call(
        ops.MAX_POOL_GRAD,
        dy,
        x,
        output,
        filter_size=window,
        strides=strides,
        pad=pad,
        dim_rounding_mode=rounding,
    )
    near(result, expected, dtype)


@pytest.mark.parametrize("block", [1, 40, 150])
def test_gradients_by_blocks_of_tiles(monkeypatch, block):
    """Blocks are rows of one image, one image, several; what no window covers gets nothing."""
    at = ops.geometry((5, 7, 9, 3), filter_size=(2, 3), strides=(2, 3), pad="valid")
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, (5, 7, 9, 3)).astype("float32")
    parts = x[:, :6].reshape(5, 3, 2, 3, 3, 3).transpose(0, 1, 3, 5, 2, 4).reshape(5, 3, 3, 3, 6)
    dy = rng.normal(size=(5, 3, 3, 3)).astype("float32")
    monkeypatch.setattr(tiles, "_BLOCK", block)
    steps = tiles.Tiles(5, at, 3)

    def whole(windows):
        apart = windows.reshape(5, 3, 3, 3, 2, 3).transpose(0, 1, 4, 2, 5, 3)
        return np.pad(apart.reshape(5, 6, 9, 3), ((0, 0), (0, 1), (0, 0), (0, 0)))

    first = np.arange(6) == parts.argmax(-1)[..., None]
    result = steps.to_first_equal(dy, x, parts.max(-1))
    np.testing.assert_array_equal(result, whole(np.where(first, dy[..., None], 0)))
    everywhere = whole(np.broadcast_to(dy[..., None], parts.shape))
    np.testing.assert_array_equal(steps.spread(dy, x.shape), everywhere)


def test_a_window_of_minus_infinity_beside_padding(call, near):
    """Padding is -inf too, but the gradient must not go there."""
    x = np.full((1, 2, 2, 1), -math.inf, "float32")
    options = {"filter_size": 2, "strides": 2, "pad": 1}
    output = call(ops.MAX_POOL, x, **options)
    near(output, np.full((1, 2, 2, 1), -math.inf), "float32")
    dy = np.array([1, 2, 3, 4], "float32").reshape(1, 2, 2, 1)
    near(call(ops.MAX_POOL_GRAD, dy, x, output, **options), dy, "float32")
