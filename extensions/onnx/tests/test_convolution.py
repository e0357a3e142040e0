"""Convolutions: paddings, groups, exact sums of integers, what does not fit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tensorplug_onnx import NodeError, UnsupportedError

from .one_operator import WAYS, assert_same, model_of, outputs_of

RNG = np.random.default_rng(0)


def whole(*shape):
    """Return small whole numbers, whose sums of products are exact in float32."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


def convolved(x, w, *, strides, dilations, pads, group=1):
    """Return the sums of the definition, one place and one tap after the other."""
    rank = len(strides)
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    counts = [
        (padded.shape[2 + a] - (w.shape[2 + a] - 1) * dilations[a] - 1) // strides[a] + 1
        for a in range(rank)
    ]
    filters, own = w.shape[:2]
    y = np.zeros((x.shape[0], filters, *counts), np.float64)
    for o, place in product(range(filters), product(*map(range, counts))):
        first = o // (filters // group) * own
        for tap in product(*map(range, w.shape[2:])):
            at = tuple(
                p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True)
            )
            read = padded[(slice(None), slice(first, first + own), *at)]
            y[(slice(None), o, *place)] += read @ w[(o, slice(None), *tap)]
    return y.astype(np.result_type(x, w))


def spread(x, w, *, strides, dilations, group, begin, sizes):
    """Return what each element adds to its window, cut to ``sizes`` from ``begin`` on."""
    rank = len(strides)
    own = x.shape[1] // group
    y = np.zeros((x.shape[0], w.shape[1] * group, *sizes), np.float32)
    for place in product(*map(range, x.shape[2:])):
        for tap in product(*map(range, w.shape[2:])):
            at = [
                p * s + t * d - b
                for p, s, t, d, b in zip(place, strides, tap, dilations, begin, strict=True)
            ]
            if not all(0 <= at[a] < sizes[a] for a in range(rank)):
                continue
            for c in range(x.shape[1]):
                outputs = slice(c // own * w.shape[1], (c // own + 1) * w.shape[1])
                added = x[(slice(None), c, *place)][:, None] * w[(c, slice(None), *tap)]
                y[(slice(None), outputs, *at)] += added
    return y


# The shapes of x and w, the attributes, and the pads that they stand for.
CONVOLUTIONS = {
    "row": ((2, 3, 9), (4, 3, 3), {"strides": [2], "pads": [2, 1]}, [2, 1]),
    "groups": ((2, 4, 5, 6), (6, 2, 2, 3), {"group": 2, "dilations": [2, 1]}, [0] * 4),
    "each channel": ((1, 3, 5, 5), (6, 1, 3, 3), {"group": 3, "pads": [1, 0, 2, 1]}, [1, 0, 2, 1]),
    "volume": ((1, 2, 4, 5, 3), (4, 1, 2, 3, 2), {"group": 2, "strides": [1, 2, 1]}, [0] * 6),
    "valid": ((1, 1, 5, 5), (1, 1, 2, 2), {"auto_pad": "VALID", "strides": [2, 2]}, [0] * 4),
    # 8 elements by threes: 3 places reach over 6 + 5 elements, so 3 are added.
    "same, more after": (
        (1, 1, 8),
        (1, 1, 3),
        {"auto_pad": "SAME_UPPER", "strides": [3], "dilations": [2]},
        [1, 2],
    ),
    "same, more before": (
        (1, 1, 8),
        (1, 1, 3),
        {"auto_pad": "SAME_LOWER", "strides": [3], "dilations": [2]},
        [2, 1],
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name, way):
    x_shape, w_shape, attributes, pads = CONVOLUTIONS[name]
    x, w, b = whole(*x_shape), whole(*w_shape), whole(w_shape[0])
    rank = len(x_shape) - 2
    expected = convolved(
        x,
        w,
        strides=attributes.get("strides", [1] * rank),
        dilations=attributes.get("dilations", [1] * rank),
        pads=pads,
        group=attributes.get("group", 1),
    ) + b.reshape(-1, *[1] * rank)
    (found,) = outputs_of(way, "Conv", [x, w, b], attributes, opset=11)
    assert_same(found, expected)


# The shapes of x and w, the attributes, where the result begins in the full one, and its sizes.
TRANSPOSED = {
    "row": ((2, 3, 4), (3, 2, 3), {"strides": [2], "pads": [1, 2]}, [1], [6]),
    "groups": ((1, 4, 3, 2), (4, 3, 2, 2), {"group": 2, "strides": [1, 3]}, [0, 0], [4, 5]),
    "volume": ((1, 1, 2, 2, 2), (1, 2, 2, 1, 2), {"dilations": [2, 1, 1]}, [0] * 3, [4, 2, 3]),
    "a step of taps more": (
        (1, 2, 3),
        (2, 1, 2),
        {"dilations": [3], "output_padding": [2], "pads": [1, 0]},
        [1],
        [7],
    ),
    "same, more after": (
        (1, 1, 3),
        (1, 1, 4),
        {"auto_pad": "SAME_UPPER", "strides": [1]},
        [1],
        [3],
    ),
    "same, more before": (
        (1, 1, 3),
        (1, 1, 4),
        {"auto_pad": "SAME_LOWER", "strides": [1]},
        [2],
        [3],
    ),
    "same, filters that do not touch": (
        (1, 1, 3),
        (1, 1, 1),
        {"auto_pad": "SAME_UPPER", "strides": [3]},
        [0],
        [9],
    ),
    "a smaller shape": ((1, 1, 3), (1, 1, 4), {"output_shape": [3]}, [2], [3]),
    "a larger shape": ((1, 1, 3), (1, 1, 2), {"output_shape": [6]}, [0], [6]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution(name, way):
    x_shape, w_shape, attributes, begin, sizes = TRANSPOSED[name]
    rank = len(sizes)
    x, w, b = whole(*x_shape), whole(*w_shape), whole(w_shape[1] * attributes.get("group", 1))
    expected = spread(
        x,
        w,
        strides=attributes.get("strides", [1] * rank),
        dilations=attributes.get("dilations", [1] * rank),
        group=attributes.get("group", 1),
        begin=begin,
        sizes=sizes,
    ) + b.reshape(-1, *[1] * rank)
    (found,) = outputs_of(way, "ConvTranspose", [x, w, b], attributes, opset=11)
    assert_same(found, expected)


def test_sums_of_integers_are_exact():
    # 600 products of 255 and 127 and one of 1: float32 has no digit left for the last one.
    x = np.full((1, 601, 1), 255, np.uint8)
    w = np.full((1, 601, 1), 127, np.int8)
    x[0, -1], w[0, -1] = 1, 1
    (found,) = outputs_of("called", "ConvInteger", [x, w], opset=10)
    assert_same(found, np.array([[[600 * 255 * 127 + 1]]], np.int32))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("of_filters", ["none", "one", "each"])
def test_integers_count_from_their_zero_points(of_filters, way):
    x = RNG.integers(0, 256, (2, 4, 5, 4)).astype(np.uint8)
    w = RNG.integers(-128, 128, (6, 2, 2, 3)).astype(np.int8)
    zeros = {"none": None, "one": np.array(-7, np.int8), "each": np.arange(-3, 3, dtype=np.int8)}
    zero = zeros[of_filters]
    moved = w if zero is None else w - zero.astype(np.int32).reshape(-1, 1, 1, 1)
    options = {"strides": [2, 1], "dilations": [1, 1], "pads": [1, 0, 0, 2]}
    # Padding is what stands for 0.
    expected = convolved(x.astype(np.int32) - 100, moved.astype(np.int32), group=2, **options)
    given = [x, w, np.array(100, np.uint8), zero]
    (found,) = outputs_of(way, "ConvInteger", given, {"group": 2, **options}, opset=10)
    assert_same(found, expected)


@pytest.mark.parametrize("way", WAYS)
def test_quantized_convolution_has_a_scale_for_each_filter(way):
    x = RNG.integers(0, 256, (1, 2, 4, 4)).astype(np.uint8)
    w = RNG.integers(-128, 128, (3, 2, 2, 2)).astype(np.int8)
    b = np.array([1000, -2000, 0], np.int32)
    scales = np.array([0.25, 0.5, 0.125], np.float32)
    sums = convolved(
        x.astype(np.int32) - 3, w.astype(np.int32), strides=[1, 1], dilations=[1, 1], pads=[0] * 4
    )
    real = (sums + b.reshape(-1, 1, 1)) * 0.5 * scales.reshape(-1, 1, 1)
    expected = np.clip(np.rint(real / 64) + 128, 0, 255).astype(np.uint8)
    assert len(np.unique(expected)) > 9
    scalar = [np.array(0.5, np.float32), np.array(3, np.uint8)]
    result = [np.array(64, np.float32), np.array(128, np.uint8)]
    given = [x, *scalar, w, scales, np.zeros(3, np.int8), *result, b]
    (found,) = outputs_of(way, "QLinearConv", given, opset=10)
    assert_same(found, expected)


def test_a_deformable_convolution_without_offsets_is_a_convolution():
    x, w = whole(1, 4, 3, 4, 3), whole(2, 2, 2, 2, 1)
    pads = [1, 0, 0, 0, 1, 0]
    offset = np.zeros((1, 2 * 3 * 4, 3, 4, 3), np.float32)
    attributes = {"group": 2, "offset_group": 2, "pads": pads}
    (found,) = outputs_of("called", "DeformConv", [x, w, offset], attributes, opset=19)
    options = {"strides": [1] * 3, "dilations": [1] * 3}
    assert_same(found, convolved(x, w, pads=pads, group=2, **options))


X, W = whole(1, 4, 5, 5), whole(2, 4, 3, 3)
INTEGERS = X.astype(np.int8), W.astype(np.int8)

# Operator, inputs, attributes, and what the message says.
REFUSED = {
    "channels": ("Conv", [X, W[:, :3]], {}, "4 channels, but the filter has 3"),
    "groups": ("Conv", [X, W], {"group": 3}, "3 groups"),
    "ranks": ("Conv", [X, W[0]], {}, "must have the same rank"),
    "no spatial axis": ("Conv", [X[..., 0, 0], W[..., 0, 0]], {}, "rank from 3 on"),
    "bias": ("Conv", [X, W, np.ones(1, np.float32)], {}, r"B must have shape \[2\], has \[1\]"),
    "kernel_shape": ("Conv", [X, W], {"kernel_shape": [3, 2]}, r"\[3, 2\], W has \[3, 3\]"),
    "strides": ("Conv", [X, W], {"strides": [1, 0]}, "strides must be 2 positive numbers"),
    "dilations": ("Conv", [X, W], {"dilations": [1]}, "dilations must be 2 positive numbers"),
    "pads": ("Conv", [X, W], {"pads": [1, 1, 1, -1]}, "pads must be 4 numbers"),
    "auto_pad": ("Conv", [X, W], {"auto_pad": "SOME"}, "auto_pad is 'SOME'"),
    "window": ("Conv", [X, W], {"dilations": [3, 1]}, "window of 7 is larger than 5"),
    "transposed groups": ("ConvTranspose", [X, W], {}, "1 groups of 4 channels, 2 of them in W"),
    "transposed, nothing left": (
        "ConvTranspose",
        [X[:, :2], W],
        {"pads": [4, 4, 4, 4]},
        r"sizes \[-1, -1\]",
    ),
    "output_shape": ("ConvTranspose", [X[:, :2], W], {"output_shape": [9]}, "must be 2 sizes"),
    "integer groups": ("ConvInteger", [*INTEGERS], {"group": 3}, "3 groups of 4 channels"),
    "offsets": (
        "DeformConv",
        [X, W, whole(1, 18, 3, 3)],
        {"offset_group": 3},
        "3 groups of offsets for 4 channels",
    ),
    "columns": (
        "Col2Im",
        [X[0], np.array([5, 5]), np.array([2, 2])],
        {},
        r"\[batch, channels \* 4, 16\], not \[4, 5, 5\]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    op_type, inputs, attributes, message = REFUSED[name]
    with pytest.raises(NodeError, match=message) as caught:
        outputs_of("called", op_type, inputs, attributes, opset=19)
    assert op_type in str(caught.value)


def test_four_axes_are_unsupported():
    model = model_of("Conv", [whole(1, 1, 3, 3, 3, 3), whole(1, 1, 2, 2, 2, 2)])
    with pytest.raises(UnsupportedError, match=r"\(Conv, ai.onnx 28\): a convolution over 4 axes"):
        model(whole(1, 1, 3, 3, 3, 3), whole(1, 1, 2, 2, 2, 2))
