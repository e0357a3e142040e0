"""Convolutions: one axis, one image, channels first, separable ones, and refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def numbers(*shape: int, salt: int = 0) -> np.ndarray:
    """Return small multiples of 1/8: the products and sums below are exact in float32."""
    return (np.random.default_rng([salt, *shape]).integers(-16, 16, shape) / 8).astype("f4")


def same(actual: tp.Tensor, expected: tp.Tensor) -> None:
    assert actual.type == expected.type
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@pytest.mark.parametrize(
    "options",
    [
        {"pad": [(0, 0), (2, 0), (0, 0)], "dilation": 2},
        {"stride": 2, "pad": 1, "dim_rounding_mode": "ceil"},
        {"stride": 2, "pad": "same"},
    ],
    ids=str,
)
def test_one_axis_is_an_image_of_one_row(options: dict[str, Any]) -> None:
    """The kernel is that of images, which the conformance suite compares with its oracle."""
    x, taps = numbers(2, 7, 2), numbers(3, 2, 3, salt=1)
    stride, dilation = options.get("stride", 1), options.get("dilation", 1)
    pad = options["pad"]
    around = [(0, 0), (pad, pad), (0, 0)] if isinstance(pad, int) else pad
    row = {
        "strides": (1, stride),
        "dilations": (1, dilation),
        "pad": pad if pad == "same" else [around[0], (0, 0), *around[1:]],
        "dim_rounding_mode": options.get("dim_rounding_mode"),
    }
    expected = tp.squeeze(tp.nn.conv2d(x[:, None], taps[None], **row), axis=1)
    same(tp.nn.conv1d(x, taps, **options), expected)
    same(tp.nn.conv1d(x[1], taps, **options), expected[1])
    first = {**options, "data_format": "NCW"}
    if not isinstance(pad, int | str):
        first["pad"] = [pad[0], pad[2], pad[1]]
    found = tp.nn.conv1d(np.moveaxis(x, -1, 1), taps, **first)
    same(tp.moveaxis(found, 1, -1), expected)


@pytest.mark.parametrize("rank", [2, 3])
def test_one_image_and_channels_first(rank: int) -> None:
    x, taps = numbers(2, *(4, 5, 6)[:rank], 2), numbers(*(2, 1, 3)[:rank], 2, 3, salt=1)
    convolve, data_format = ((tp.nn.conv2d, "NCHW"), (tp.nn.conv3d, "NCDHW"))[rank - 2]
    expected = convolve(x, taps, 2, 1)
    same(convolve(x[1], taps, 2, 1), expected[1])
    found = convolve(np.moveaxis(x, -1, 1), taps, 2, 1, data_format=data_format)
    same(tp.moveaxis(found, 1, -1), expected)


def test_a_separable_convolution_is_two() -> None:
    x, depthwise, pointwise = numbers(2, 5, 6, 2), numbers(3, 2, 2, 3, salt=1), numbers(1, 1, 6, 4)
    inner = tp.nn.depthwise_conv2d(x, depthwise, pad="same", dilations=2)
    expected = tp.nn.conv2d(inner, pointwise)
    separable = partial(tp.nn.separable_conv2d, strides=1, pad="same", dilation=2)
    same(separable(x, depthwise, pointwise), expected)
    same(separable(x[0], depthwise, pointwise), expected[0])
    found = separable(np.moveaxis(x, -1, 1), depthwise, pointwise, data_format="NCHW")
    same(tp.moveaxis(found, 1, -1), expected)


IMAGE, FILTER = numbers(1, 5, 6, 2), numbers(3, 2, 2, 3, salt=1)
VOLUME, TAPS = numbers(1, 3, 4, 5, 2), numbers(2, 2, 3, 2, 3, salt=1)


REFUSED = {  # error: call, what the message says
    ArgumentError: [
        (
            lambda: tp.nn.conv1d(IMAGE[0], FILTER[0], data_format="NHWC"),
            "conv1d: data_format must be one of 'NWC', 'NCW', got 'NHWC'",
        ),
        (
            lambda: tp.nn.conv1d(IMAGE[0], FILTER[0], 1.5),
            "conv1d: stride must be an integer, got 1.5",
        ),
        (
            lambda: tp.nn.conv3d(VOLUME, TAPS, (1, 2)),
            "attribute 'strides': must be a positive int or three of them, got (1, 2)",
        ),
        (
            lambda: tp.nn.conv3d(VOLUME, TAPS, 1, [(0, 0)] * 4),
            "attribute 'pad': must be five (before, after) pairs",
        ),
    ],
    ShapeError: [
        (
            lambda: tp.nn.depthwise_conv2d(IMAGE, FILTER[:, :, :1]),
            "x has 2 channels, but the filter has 1",
        ),
        (
            lambda: tp.nn.conv3d(IMAGE[0], TAPS),
            "x and filter must have rank 5, got [5, 6, 2] and [2, 2, 3, 2, 3]",
        ),
        (
            lambda: tp.nn.conv2d_transpose(IMAGE, FILTER[:, :, :1, :2], (1, 6, 7, 1)),
            "dy must have shape [1, 4, 6, 2]",
        ),
        (
            lambda: tp.nn.conv2d_transpose(IMAGE, FILTER, (1, -6, 7, 1)),
            "conv2d_transpose: output_shape must not contain negative sizes",
        ),
        (
            lambda: tp.nn.separable_conv2d(IMAGE, FILTER, FILTER),
            "x has 6 channels, but the filter has 2",
        ),
    ],
    DTypeError: [
        (
            lambda: tp.nn.conv3d(VOLUME.astype(int), TAPS.astype(int)),
            "input 'x' is int64[1,3,4,5,2], but its dtype must be one of bfloat16, float16,",
        ),
    ],
}


test_refused = refused(REFUSED)
