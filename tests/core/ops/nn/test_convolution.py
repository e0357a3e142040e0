"""Convolutions of one to three dimensions, depthwise and transposed, against loops."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

Shape = tuple[int, ...]


def numbers(*shape: int, salt: int = 0) -> np.ndarray:
    """Return small multiples of 1/8: the products and sums below are exact in float32."""
    return (np.random.default_rng([salt, *shape]).integers(-16, 16, shape) / 8).astype("f4")


def axis(size: int, taps: int, stride: int, dilation: int, pad: Any, mode: Any) -> tuple[int, int]:
    """Return (padding before, positions) by TensorFlow's formulas."""
    reach = (taps - 1) * dilation + 1
    if pad == "same":
        count = math.ceil(size / stride)
        return max((count - 1) * stride + reach - size, 0) // 2, count
    before, after = (0, 0) if pad == "valid" else pad
    steps = (size + before + after - reach) / stride
    rounded = {"ceil": math.ceil(steps), "round": math.floor(steps + 0.5)}
    return before, rounded.get(mode, math.floor(steps)) + 1


def links(x: Shape, taps: Shape, options: dict[str, Any]) -> tuple[list[Any], Shape]:
    """Return (position, element, tap) of everything multiplied, and the number of positions."""
    count = len(taps)
    strides, dilations = (
        (value,) * count if isinstance(value, int) else value
        for value in (options.get("strides", 1), options.get("dilations", 1))
    )
    pad = options.get("pad", "valid")
    pads = [pad] * count if isinstance(pad, str) else pad
    if isinstance(pad, int):
        pads = [(pad, pad)] * count
    axes = [
        axis(*item, options.get("dim_rounding_mode"))
        for item in zip(x, taps, strides, dilations, pads, strict=True)
    ]
    found = []
    outs = tuple(out for _, out in axes)
    for position in np.ndindex(*outs):
        for tap in np.ndindex(*taps):
            element = tuple(
                p * s + t * d - before
                for p, s, t, d, (before, _) in zip(
                    position, strides, tap, dilations, axes, strict=True
                )
            )
            if all(0 <= at < n for at, n in zip(element, x, strict=True)):
                found.append((position, element, tap))
    return found, outs


def convolved(x: np.ndarray, taps: np.ndarray, **options: Any) -> np.ndarray:
    """Return the convolution with channels last, every product by itself."""
    found, outs = links(x.shape[1:-1], taps.shape[:-2], options)
    result = np.zeros((len(x), *outs, taps.shape[-1]))
    for position, element, tap in found:
        result[(slice(None), *position)] += x[(slice(None), *element)] @ taps[tap]
    return result.astype("f4")


def per_channel(x: np.ndarray, taps: np.ndarray, **options: Any) -> np.ndarray:
    """Return the depthwise convolution with channels last."""
    found, outs = links(x.shape[1:-1], taps.shape[:-2], options)
    result = np.zeros((len(x), *outs, *taps.shape[-2:]))
    for position, element, tap in found:
        result[(slice(None), *position)] += x[(slice(None), *element)][..., None] * taps[tap]
    return result.reshape(len(x), *outs, -1).astype("f4")


def same(actual: tp.Tensor, expected: np.ndarray) -> None:
    found = actual.numpy()
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    np.testing.assert_array_equal(found, expected)


def first(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def channels_first_pad(pad: Any) -> Any:
    return pad if isinstance(pad, str | int) else [(0, 0), (0, 0), *pad]


def channels_last_pad(pad: Any) -> Any:
    return pad if isinstance(pad, str | int) else [(0, 0), *pad, (0, 0)]


WINDOWS: list[dict[str, Any]] = [  # strides, pad, dilations and rounding, on any axes
    {},
    {"strides": 2, "pad": "same"},
    {"pad": "same", "dilations": 2},
    {"strides": 2, "pad": "same", "dilations": 2},  # TensorFlow.js refuses both at once
    {"strides": 2, "pad": 1},
    *({"strides": 2, "pad": 0, "dim_rounding_mode": mode} for mode in ("floor", "round", "ceil")),
]
SIZES = {  # rank: x without batch and channels, taps
    1: ((7,), (3,)),
    2: ((7, 6), (3, 2)),
    3: ((4, 6, 5), (1, 3, 2)),
}
PADS = {1: [(2, 0)], 2: [(2, 0), (0, 1)], 3: [(0, 1), (2, 0), (1, 1)]}
ROWS = [  # of two and three axes those that the conformance suite lacks, and one that it has
    *itertools.product((1,), WINDOWS),
    *itertools.product((2, 3), WINDOWS[3:5]),
    *((rank, {"pad": pads, "dilations": 2}) for rank, pads in PADS.items()),
]


def windowed(rank: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return ``options`` as the op of ``rank`` takes them, but for the padding."""
    renamed = {"strides": "stride", "dilations": "dilation"} if rank == 1 else {}
    return {renamed.get(name, name): value for name, value in options.items() if name != "pad"}


@pytest.mark.parametrize(("rank", "options"), ROWS)
def test_convolution(rank: int, options: dict[str, Any]) -> None:
    sizes, taps = SIZES[rank]
    x, weights = numbers(2, *sizes, 2), numbers(*taps, 2, 3, salt=1)
    expected = convolved(x, weights, **options)
    convolve = {1: tp.nn.conv1d, 2: tp.nn.conv2d, 3: tp.nn.conv3d}[rank]
    pad, rest = options.get("pad", "valid"), windowed(rank, options)
    same(convolve(x, weights, pad=channels_last_pad(pad), **rest), expected)
    same(convolve(x[0], weights, pad=channels_last_pad(pad), **rest), expected[0])
    data_format = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]
    given = {"pad": channels_first_pad(pad), "data_format": data_format, **rest}
    same(convolve(first(x), weights, **given), first(expected))
    same(convolve(first(x)[1], weights, **given), first(expected)[1])


def test_separable_convolution() -> None:
    x, depthwise, pointwise = numbers(2, 5, 6, 2), numbers(3, 2, 2, 3, salt=1), numbers(1, 1, 6, 4)
    inner = per_channel(x, depthwise, pad="same", dilations=2)
    expected = convolved(inner, pointwise)
    same(tp.nn.separable_conv2d(x, depthwise, pointwise, 1, "same", dilation=2), expected)
    same(
        x_first := tp.nn.separable_conv2d(
            first(x), depthwise, pointwise, 1, "same", dilation=2, data_format="NCHW"
        ),
        first(expected),
    )
    assert x_first.dtype is tp.float32
    single = tp.nn.separable_conv2d(x[0], depthwise, pointwise, 1, "same", dilation=2)
    same(single, expected[0])


IMAGE, FILTER = numbers(1, 5, 6, 2), numbers(3, 2, 2, 3, salt=1)
VOLUME, TAPS = numbers(1, 3, 4, 5, 2), numbers(2, 2, 3, 2, 3, salt=1)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(dtype: str) -> None:
    """float16 is rounded once, at the end; floats of two kinds are promoted."""
    x, taps = IMAGE.astype(dtype), FILTER.astype(dtype)
    for convolve, formula in (
        (tp.nn.conv2d, convolved),
        (tp.nn.depthwise_conv2d, per_channel),
    ):
        found = convolve(x, taps).numpy()
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, formula(IMAGE, FILTER).astype(dtype))
    assert tp.nn.conv2d(IMAGE, taps).dtype is tp.result_type(tp.float32, getattr(tp, dtype))


REFUSED = {
    "format of one axis": (
        lambda: tp.nn.conv1d(IMAGE[0], FILTER[0], data_format="NHWC"),
        ArgumentError,
        "conv1d: data_format must be one of 'NWC', 'NCW', got 'NHWC'",
    ),
    "fractional stride": (
        lambda: tp.nn.conv1d(IMAGE[0], FILTER[0], 1.5),
        ArgumentError,
        "conv1d: stride must be an integer, got 1.5",
    ),
    "channels": (
        lambda: tp.nn.depthwise_conv2d(IMAGE, FILTER[:, :, :1]),
        ShapeError,
        "x has 2 channels, but the filter has 1",
    ),
    "volume of rank 3": (
        lambda: tp.nn.conv3d(IMAGE[0], TAPS),
        ShapeError,
        "x and filter must have rank 5, got [5, 6, 2] and [2, 2, 3, 2, 3]",
    ),
    "two strides for a volume": (
        lambda: tp.nn.conv3d(VOLUME, TAPS, (1, 2)),
        ArgumentError,
        "attribute 'strides': must be a positive int or three of them, got (1, 2)",
    ),
    "four pads for a volume": (
        lambda: tp.nn.conv3d(VOLUME, TAPS, 1, [(0, 0)] * 4),
        ArgumentError,
        "attribute 'pad': must be five (before, after) pairs",
    ),
    "integers": (
        lambda: tp.nn.conv3d(VOLUME.astype(int), TAPS.astype(int)),
        DTypeError,
        "input 'x' is int64[1,3,4,5,2], but its dtype must be one of bfloat16, float16, float32,",
    ),
    "output shape": (
        lambda: tp.nn.conv2d_transpose(IMAGE, FILTER[:, :, :1, :2], (1, 6, 7, 1)),
        ShapeError,
        "dy must have shape [1, 4, 6, 2]",
    ),
    "negative output shape": (
        lambda: tp.nn.conv2d_transpose(IMAGE, FILTER, (1, -6, 7, 1)),
        ShapeError,
        "conv2d_transpose: output_shape must not contain negative sizes",
    ),
    "separable": (
        lambda: tp.nn.separable_conv2d(IMAGE, FILTER, FILTER),
        ShapeError,
        "x has 6 channels, but the filter has 2",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=re.escape(message)):
        call()
