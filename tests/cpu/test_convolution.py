"""The convolution family against loops over every output, tap and channel."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops.nn.convolution import convolution as ops

SAME = "same"
CASES = [  # x (NHWC), filter, options
    ((1, 4, 4, 1), (3, 3, 1, 2), {"strides": 1, "pad": SAME}),
    ((2, 5, 6, 3), (3, 2, 3, 4), {"strides": 1, "pad": "valid"}),
    ((2, 5, 6, 3), (3, 2, 3, 4), {"strides": (2, 3), "pad": SAME}),
    ((1, 7, 7, 2), (3, 3, 2, 2), {"strides": 1, "pad": SAME, "dilations": (2, 1)}),
    ((1, 7, 8, 2), (2, 3, 2, 3), {"strides": 1, "pad": "valid", "dilations": 2}),
    ((2, 4, 5, 2), (2, 2, 2, 3), {"strides": 2, "pad": 1}),
    ((1, 3, 3, 1), (2, 2, 1, 1), {"strides": 1, "pad": 3}),  # more padding than the taps reach
    ((1, 5, 5, 2), (3, 3, 2, 1), {"strides": 1, "pad": ((0, 0), (2, 0), (0, 1), (0, 0))}),
    ((1, 6, 6, 1), (3, 3, 1, 2), {"strides": 2, "pad": 0, "dim_rounding_mode": "ceil"}),
    ((1, 6, 6, 1), (3, 3, 1, 2), {"strides": 2, "pad": 0, "dim_rounding_mode": "round"}),
    ((1, 6, 6, 1), (3, 3, 1, 2), {"strides": 2, "pad": 0, "dim_rounding_mode": "floor"}),
    ((2, 3, 4, 5), (1, 1, 5, 3), {"strides": 1, "pad": "valid"}),
    ((2, 3, 4, 5), (1, 1, 5, 3), {"strides": 2, "pad": SAME}),
    ((1, 4, 4, 20), (3, 3, 20, 2), {"strides": 2, "pad": SAME}),
    ((1, 4, 4, 20), (3, 3, 20, 2), {"strides": 1, "pad": SAME}),
    ((3, 4, 4, 1), (2, 2, 1, 20), {"strides": 1, "pad": SAME}),
    ((0, 4, 4, 2), (3, 3, 2, 2), {"strides": 1, "pad": SAME}),
    ((2, 4, 4, 0), (3, 3, 0, 2), {"strides": 1, "pad": SAME}),
    ((2, 4, 4, 2), (3, 3, 2, 0), {"strides": 1, "pad": SAME}),
    ((2, 0, 4, 2), (1, 1, 2, 3), {"strides": 1, "pad": SAME}),
]


def pairs(options):
    strides, dilations = options["strides"], options.get("dilations", 1)
    return [
        value if isinstance(value, tuple) else (value, value) for value in (strides, dilations)
    ]


def layout(size, taps, stride, dilation, options, axis):
    """Return (padding before, number of positions) of one axis, by TensorFlow's rules."""
    reach = (taps - 1) * dilation + 1
    pad = options["pad"]
    if pad == SAME:
        count = math.ceil(size / stride)
        return max((count - 1) * stride + reach - size, 0) // 2, count
    before, after = (
        {"valid": (0, 0)}.get(pad)
        if isinstance(pad, str)
        else ((pad, pad) if isinstance(pad, int) else pad[axis])
    )
    free = (size + before + after - reach) / stride
    mode = options.get("dim_rounding_mode")
    rounded = {"ceil": math.ceil(free), "round": math.floor(free + 0.5)}.get(
        mode, math.floor(free)
    )
    return before, rounded + 1


def links(x, filter, options):
    """Yield (output, input, tap) positions that a convolution connects, and its output size."""
    strides, dilations = pairs(options)
    (top, rows), (left, columns) = (
        layout(x[1 + k], filter[k], strides[k], dilations[k], options, 1 + k) for k in (0, 1)
    )
    found = []
    for row, column, i, j in np.ndindex(rows, columns, filter[0], filter[1]):
        y = row * strides[0] + i * dilations[0] - top
        z = column * strides[1] + j * dilations[1] - left
        if 0 <= y < x[1] and 0 <= z < x[2]:
            found.append(((row, column), (y, z), (i, j)))
    return found, (rows, columns)


def data(shape, seed, dtype):
    """Small multiples of 1/8: every product and sum below is exact in float32."""
    return (np.random.default_rng(seed).integers(-16, 16, shape) / 8).astype(dtype)


def arranged(x, data_format):
    return x if data_format == "NHWC" else np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def options_for(options, data_format):
    pad = options["pad"]
    if data_format == "NCHW" and isinstance(pad, tuple):
        pad = (pad[0], pad[3], pad[1], pad[2])
    return {**options, "pad": pad, "data_format": data_format}


def same(actual, expected, dtype):
    assert (actual.dtype, actual.shape) == (np.dtype(dtype), expected.shape)
    np.testing.assert_array_equal(actual, expected.astype(dtype))


@pytest.fixture(params=["NHWC", "NCHW"])
def data_format(request):
    return request.param


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("x", "filter", "options"), CASES)
class TestConvolution:
    def test_forward(self, call, x, filter, options, dtype, data_format):
        found, (rows, columns) = links(x, filter, options)
        image, weights = data(x, 1, dtype), data(filter, 2, dtype)
        expected = np.zeros((x[0], rows, columns, filter[3]))
        for (r, c), (y, z), (i, j) in found:
            expected[:, r, c] += image[:, y, z].astype("float64") @ weights[i, j].astype("float64")
        result = call(
            ops.CONV2D, arranged(image, data_format), weights, **options_for(options, data_format)
        )
        same(result, arranged(expected, data_format), dtype)

    def test_backprop_input(self, call, x, filter, options, dtype, data_format):
        found, (rows, columns) = links(x, filter, options)
        dy, weights = data((x[0], rows, columns, filter[3]), 3, dtype), data(filter, 4, dtype)
        expected = np.zeros(x)
        for (r, c), (y, z), (i, j) in found:
            expected[:, y, z] += dy[:, r, c].astype("float64") @ weights[i, j].astype("float64").T
        shape = arranged(expected, data_format).shape
        result = call(
            ops.CONV2D_BACKPROP_INPUT,
            arranged(dy, data_format),
            weights,
            input_shape=shape,
            **options_for(options, data_format),
        )
        same(result, arranged(expected, data_format), dtype)

    def test_backprop_filter(self, call, x, filter, options, dtype, data_format):
        found, (rows, columns) = links(x, filter, options)
        image, dy = data(x, 5, dtype), data((x[0], rows, columns, filter[3]), 6, dtype)
        expected = np.zeros(filter)
        for (r, c), (y, z), (i, j) in found:
            expected[i, j] += image[:, y, z].astype("float64").T @ dy[:, r, c].astype("float64")
        result = call(
            ops.CONV2D_BACKPROP_FILTER,
            arranged(image, data_format),
            arranged(dy, data_format),
            filter_shape=filter,
            **options_for(options, data_format),
        )
        same(result, expected, dtype)


@pytest.mark.parametrize(
    ("x", "filter", "strides"),
    [
        ((40, 28, 28, 1), (3, 3, 1, 2), 1),
        ((20, 24, 24, 16), (3, 3, 16, 3), 2),
        ((2, 90, 80, 18), (3, 3, 18, 2), 1),  # one image takes several
    ],
)
def test_batches_that_take_several_chunks(call, x, filter, strides):
    """The matrix of windows is built for some images at a time; each image is its own."""
    image, weights = data(x, 7, "float32"), data(filter, 8, "float32")
    options = {"strides": strides, "pad": SAME}
    whole = call(ops.CONV2D, image, weights, **options)
    dy = data(whole.shape, 9, "float32")
    spread = call(ops.CONV2D_BACKPROP_INPUT, dy, weights, input_shape=x, **options)
    total = np.zeros(filter)
    for at in range(x[0]):
        one = image[at : at + 1]
        same(whole[at : at + 1], call(ops.CONV2D, one, weights, **options), "float32")
        back = call(
            ops.CONV2D_BACKPROP_INPUT, dy[at : at + 1], weights, input_shape=one.shape, **options
        )
        same(spread[at : at + 1], back, "float32")
        total += call(
            ops.CONV2D_BACKPROP_FILTER, one, dy[at : at + 1], filter_shape=filter, **options
        )
    result = call(ops.CONV2D_BACKPROP_FILTER, image, dy, filter_shape=filter, **options)
    same(result, total, "float32")
