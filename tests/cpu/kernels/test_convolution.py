"""Convolutions in several chunks of images."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.ops.nn.convolution import convolution as ops

SAME = "same"


def data(shape, seed, dtype):
    """Small multiples of 1/8: every product and sum below is exact in float32."""
    return (np.random.default_rng(seed).integers(-16, 16, shape) / 8).astype(dtype)


def same(actual, expected, dtype):
    assert (actual.dtype, actual.shape) == (np.dtype(dtype), expected.shape)
    np.testing.assert_array_equal(actual, expected.astype(dtype))


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
