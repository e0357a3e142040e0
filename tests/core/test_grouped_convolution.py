"""Convolutions in groups of channels: those of a filter that is 0 between groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.testing import check_grads

from .test_convolution import (
    SIZES,
    channels_first_pad,
    channels_last_pad,
    convolved,
    first,
    numbers,
    same,
    windowed,
)

pytestmark = pytest.mark.usefixtures("on_the_cpu")

CONVOLUTIONS = {1: tp.nn.conv1d, 2: tp.nn.conv2d, 3: tp.nn.conv3d}
FORMATS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
CHANNELS = 6


def dense(taps: np.ndarray, groups: int) -> np.ndarray:
    """Return the filter of all channels."""
    own, out = taps.shape[-2], taps.shape[-1] // groups
    full = np.zeros((*taps.shape[:-2], own * groups, out * groups), taps.dtype)
    for group in range(groups):
        columns = slice(group * out, (group + 1) * out)
        full[..., group * own : (group + 1) * own, columns] = taps[..., columns]
    return full


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 3, CHANNELS])
@pytest.mark.parametrize("multiple", [1, 2])
@pytest.mark.parametrize(
    "options",
    [{}, {"strides": 2, "pad": "same", "dilations": 2}, {"strides": 2, "pad": 1}],
    ids=str,
)
def test_values(rank: int, groups: int, multiple: int, options: dict[str, Any]) -> None:
    sizes, taps = SIZES[rank]
    x = numbers(2, *sizes, CHANNELS)
    weights = numbers(*taps, CHANNELS // groups, multiple * groups, salt=1)
    expected = convolved(x, dense(weights, groups), **options)
    pad, rest = options.get("pad", "valid"), {**windowed(rank, options), "groups": groups}
    convolve = CONVOLUTIONS[rank]
    same(convolve(x, weights, pad=channels_last_pad(pad), **rest), expected)
    same(convolve(x[1], weights, pad=channels_last_pad(pad), **rest), expected[1])
    given = {"pad": channels_first_pad(pad), "data_format": FORMATS[rank], **rest}
    same(convolve(first(x), weights, **given), first(expected))
    same(
        tp.compile(partial(convolve, **given))(*map(tp.asarray, (first(x), weights))),
        first(expected),
    )


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("groups", [2, 4])
def test_dtypes(groups: int, dtype: str) -> None:
    x, weights = numbers(1, 5, 5, 4), numbers(2, 2, 4 // groups, 4, salt=1)
    expected = convolved(x, dense(weights, groups))
    found = tp.nn.conv2d(x.astype(dtype), weights.astype(dtype), groups=groups)
    assert (found.dtype.name, found.shape) == (dtype, expected.shape)
    np.testing.assert_array_equal(found.numpy(), expected.astype(dtype))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [2, 4])
def test_derivatives(rank: int, groups: int) -> None:
    sizes, taps = {1: ((4,), (2,)), 2: ((3, 3), (2, 2)), 3: ((2, 3, 2), (1, 2, 2))}[rank]
    x = numbers(1, *sizes, 4).astype("f8")
    weights = numbers(*taps, 4 // groups, 4, salt=1).astype("f8")
    convolve = partial(CONVOLUTIONS[rank], pad="same", groups=groups)
    check_grads(lambda x, w: convolve(x, w) ** 2, [x, weights], order=2, directions=1, rtol=1e-5)


def test_groups_of_one_channel_are_one_kernel() -> None:
    x, weights = numbers(2, 5, 5, 4), numbers(3, 3, 1, 8, salt=1)
    with tp.profile() as profile:
        tp.nn.conv2d(x, weights, groups=4)
    names = [kernel.name for kernel in profile.kernels]
    assert "DepthwiseConv2dNative" in names
    assert "Conv2D" not in names


X = np.ones((1, 5, 5, 6), np.float32)


@pytest.mark.parametrize(
    ("shape", "groups", "error", "message"),
    [
        ((3, 3, 3, 4), 0, ArgumentError, "conv2d: groups must be at least 1, got 0"),
        ((3, 3, 3, 4), 2.0, ArgumentError, "conv2d: groups must be an integer, got 2.0"),
        ((3, 3, 3, 4), True, ArgumentError, "conv2d: groups must be an integer, got True"),
        ((3, 3, 2, 4), 4, ShapeError, r"for 4 groups of the 6 channels of x, the filter must be"),
        ((3, 3, 6, 4), 2, ShapeError, r"a multiple of 2\], got float32\[3,3,6,4\]"),
        ((3, 3, 3, 5), 2, ShapeError, r"a multiple of 2\], got float32\[3,3,3,5\]"),
        ((3, 3, 3), 2, ShapeError, "rank 4"),
        ((3, 3, 2, 9), 1, ShapeError, "the filter has 2; x is in NHWC order; .* with groups=3"),
        ((3, 3, 4, 4), 1, ShapeError, "but the filter has 4; x is in NHWC order$"),
        ((3, 3, 2, 4), 1, ShapeError, "order$"),  # 3 does not divide 4
    ],
)
def test_refused(
    shape: tuple[int, ...], groups: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tp.nn.conv2d(X, np.ones(shape, np.float32), groups=groups)
