"""Pooling: number and places of windows, padding, regions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tensorplug_onnx import NodeError

from .one_operator import WAYS, assert_same, model_of, outputs_of

RNG = np.random.default_rng(1)


def windows_of(x, taps, *, strides, dilations, begin, counts):
    """Return what each window reads: NaN for padding; [batch, channels, *counts, taps]."""
    found = np.full((*x.shape[:2], *counts, int(np.prod(taps))), np.nan)
    for place in product(*map(range, counts)):
        for number, tap in enumerate(product(*map(range, taps))):
            at = [
                p * s + t * d - b
                for p, s, t, d, b in zip(place, strides, tap, dilations, begin, strict=True)
            ]
            if all(0 <= one < size for one, size in zip(at, x.shape[2:], strict=True)):
                found[(slice(None), slice(None), *place, number)] = x[(..., *at)]
    return found


# The sizes, the attributes, where the first window begins before the elements, and the counts.
PLACES = {
    "row": ([7], {"kernel_shape": [3], "strides": [2], "pads": [1, 2]}, [1], [4]),
    "rounded down": ([6], {"kernel_shape": [3], "strides": [2]}, [0], [2]),
    "rounded up": ([6], {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}, [0], [3]),
    # A third window would begin in the padding.
    "not in the padding": (
        [4],
        {"kernel_shape": [2], "strides": [3], "pads": [1, 1], "ceil_mode": 1},
        [1],
        [2],
    ),
    "no window of padding": (
        [4],
        {"kernel_shape": [1], "pads": [0, 1], "ceil_mode": 1},
        [0],
        [4],
    ),
    "plane": (
        [5, 6],
        {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [1, 2], "pads": [1, 2, 0, 1]},
        [1, 2],
        [3, 3],
    ),
    "volume": ([3, 4, 2], {"kernel_shape": [2, 2, 2], "strides": [1, 2, 1]}, [0] * 3, [2, 2, 1]),
    "same, more after": (
        [5],
        {"kernel_shape": [4], "auto_pad": "SAME_UPPER", "strides": [2]},
        [1],
        [3],
    ),
    "same, more before": (
        [5],
        {"kernel_shape": [4], "auto_pad": "SAME_LOWER", "strides": [2]},
        [2],
        [3],
    ),
}


def read_of(name, x):
    """Return what the windows read, and the attributes."""
    sizes, attributes, begin, counts = PLACES[name]
    ones = [1] * len(sizes)
    steps, gaps = attributes.get("strides", ones), attributes.get("dilations", ones)
    taps = attributes["kernel_shape"]
    options = {"strides": steps, "dilations": gaps, "begin": begin, "counts": counts}
    return windows_of(x, taps, **options), attributes


def random_for(name):
    return RNG.permutation(6 * int(np.prod(PLACES[name][0]))).reshape(2, 3, *PLACES[name][0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("name", PLACES)
def test_largest(name, dtype, way):
    x = (random_for(name) % 100 - 120).astype(dtype)  # padding, as 0, would be larger
    read, attributes = read_of(name, x)
    (found,) = outputs_of(way, "MaxPool", [x], attributes, opset=12)
    assert_same(found, np.nanmax(read, axis=-1).astype(dtype))


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("name", PLACES)
def test_places_of_the_largest(name, storage_order):
    x = random_for(name).astype(np.float32)
    read, attributes = read_of(name, x)
    attributes = {**attributes, "storage_order": storage_order}
    y, found = outputs_of("compiled", "MaxPool", [x], attributes, opset=12, outputs=2)
    # Numbers are different, so that each has one place.
    spatial = np.arange(x[0, 0].size).reshape(x.shape[2:], order="F" if storage_order else "C")
    flat = np.arange(6).reshape(2, 3, *[1] * spatial.ndim) * spatial.size + spatial
    place_of = dict(zip(x.ravel().tolist(), flat.ravel().tolist(), strict=True))
    expected = [place_of[value] for value in np.nanmax(read, axis=-1).ravel().tolist()]
    assert_same(found, np.array(expected, np.int64).reshape(y.shape))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 3, 3, 2], 1),
        ([1, np.nan, 9, np.nan], 1),
        ([-np.inf, -np.inf, -np.inf, -np.inf], 0),  # the padding before them counts as -inf too
    ],
    ids=["equal", "NaN", "-inf"],
)
def test_the_first_of_the_largest_is_taken(values, expected):
    x = np.array(values, np.float32)[None, None]
    attributes = {"kernel_shape": [6], "pads": [1, 1]}
    y, place = outputs_of("called", "MaxPool", [x], attributes, opset=12, outputs=2)
    assert_same(place, np.array([[[expected]]], np.int64))
    assert_same(y, x[..., expected : expected + 1])


def test_padding_is_never_the_place_of_the_largest():
    x = np.array([[[[7, 0], [7, 0]]]], np.float32)  # padding is read as the first element
    attributes = {"kernel_shape": [1, 2], "pads": [0, 1, 0, 0], "strides": [1, 2]}
    _, places = outputs_of("called", "MaxPool", [x], attributes, opset=12, outputs=2)
    assert_same(places, np.array([[[[0], [2]]]]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PLACES)
def test_averages(name, way):
    x = random_for(name).astype(np.float32)
    read, attributes = read_of(name, x)
    (found,) = outputs_of(way, "AveragePool", [x], attributes, opset=19)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.nanmean(read, axis=-1), rtol=1e-6)


@pytest.mark.parametrize("name", ["row", "plane", "same, more after"])
def test_padding_counts_in_averages_if_it_is_asked_for(name):
    x = random_for(name).astype(np.float32)
    read, attributes = read_of(name, x)
    attributes = {**attributes, "count_include_pad": 1}
    (found,) = outputs_of("called", "AveragePool", [x], attributes, opset=19)
    np.testing.assert_allclose(found, np.nan_to_num(read).mean(-1), rtol=1e-6)


def test_what_lies_behind_the_padding_does_not_count():
    x = np.array([[[3, 6, 9, 12]]], np.float32)
    attributes = {"kernel_shape": [3], "strides": [2], "pads": [0, 1], "ceil_mode": 1}
    # Without the padding asked for, 3 elements and then 2; with it, 3 and then 3.
    for counted, expected in ((0, [6, 10.5]), (1, [6, 7])):
        given = {**attributes, "count_include_pad": counted}
        (found,) = outputs_of("called", "AveragePool", [x], given, opset=19)
        assert_same(found, np.array([[expected]], np.float32))
    # With padding of 2, a third window reads one number, one padding, and what lies behind it.
    given = {**attributes, "pads": [0, 2], "kernel_shape": [4], "count_include_pad": 1}
    (found,) = outputs_of("called", "AveragePool", [x], {**given, "strides": [3]}, opset=19)
    assert_same(found, np.array([[[7.5, 4]]], np.float32))


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("name", PLACES)
def test_norms(name, p):
    x = random_for(name).astype(np.float32) / 10 - 1
    read, attributes = read_of(name, x)
    (found,) = outputs_of("compiled", "LpPool", [x], {**attributes, "p": p}, opset=18)
    expected = (np.abs(np.nan_to_num(read)) ** p).sum(-1) ** (1 / p)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_norm(p):
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    (found,) = outputs_of("compiled", "GlobalLpPool", [x], {"p": p}, opset=7)
    expected = np.linalg.norm(x.reshape(2, 3, -1), p, axis=-1).reshape(2, 3, 1, 1)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_the_largest_of_regions(way):
    x = RNG.standard_normal((2, 3, 6, 7)).astype(np.float32)
    # Rounded: columns 1 to 4 and rows 0 to 3 of image 1; one element; one outside.
    rois = np.array([[1, 2, 0.4, 7.2, 6], [0, 10, 6, 10, 6], [0, 40, 40, 44, 44]], np.float32)
    attributes = {"pooled_shape": [2, 2], "spatial_scale": 0.5}
    (found,) = outputs_of(way, "MaxRoiPool", [x, rois], attributes, opset=7)
    expected = np.zeros((3, 3, 2, 2), np.float32)
    for p, q in product(range(2), repeat=2):
        expected[0, :, p, q] = x[1, :, 2 * p : 2 * p + 2, 1 + 2 * q : 3 + 2 * q].max((1, 2))
    expected[1] = x[0, :, 3:4, 5:6]
    assert_same(found, expected)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_regions_of_whole_elements(ratio, mode):
    # Of a plane that rises by 1 from column to column and by 10 from row to row, samples can be
    # told; both bins of 2 rows and 2 columns have 2 by 2 samples, in the middle of elements.
    x = (np.arange(8)[:, None] * 10 + np.arange(8)).astype(np.float32)[None, None]
    rois = np.array([[1, 2, 5, 6]], np.float32)
    attributes = {"mode": mode, "sampling_ratio": ratio, "output_height": 2, "output_width": 2}
    given = [x, rois, np.array([0])]
    (found,) = outputs_of("called", "RoiAlign", given, attributes, opset=16)
    begin = np.array([[21, 23], [41, 43]], np.float32)
    assert_same(found, (begin + (5.5 if mode == "avg" else 11))[None, None])


def test_regions_before_version_16_are_not_moved_by_half():
    x = (np.arange(8)[:, None] * 10 + np.arange(8)).astype(np.float32)[None, None]
    rois, at = np.array([[1, 2, 5, 6]], np.float32), np.array([0])
    attributes = {"sampling_ratio": 2}
    (old,) = outputs_of("called", "RoiAlign", [x, rois, at], attributes, opset=10)
    (new,) = outputs_of("called", "RoiAlign", [x, rois + 0.5, at], attributes, opset=16)
    assert_same(old, np.array([[[[43]]]], np.float32))
    assert_same(new, old)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_no_regions(ratio, mode):
    x, rois, at = np.ones((1, 2, 3, 3), np.float32), np.ones((0, 4), np.float32), np.array([], int)
    attributes = {"mode": mode, "sampling_ratio": ratio, "output_height": 2}
    (found,) = outputs_of("called", "RoiAlign", [x, rois, at], attributes, opset=16)
    assert_same(found, np.zeros((0, 2, 2, 1), np.float32))


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_a_region_without_area_has_no_samples(mode):
    x, rois = np.ones((1, 2, 3, 3), np.float32), np.array([[1, 1, 2, 2], [2, 2, 2, 2]], np.float32)
    given = [x, rois, np.array([0, 0])]
    (found,) = outputs_of("called", "RoiAlign", given, {"mode": mode}, opset=16)
    assert_same(found, np.array([1, 0], np.float32).repeat(2).reshape(2, 2, 1, 1))


X = np.zeros((1, 1, 4, 4), np.float32)
PAIR = np.zeros((1, 1, 2, 2), np.float32)
SIZES = np.array([1, 1, 3, 4])

# Operator, inputs, attributes, and what the message says.
REFUSED = {
    "window": ("MaxPool", [X], {"kernel_shape": [5, 1]}, "window of 5 is larger than 4"),
    "taps": ("AveragePool", [X], {"kernel_shape": [2]}, "kernel_shape must be 2 positive numbers"),
    "pads": ("LpPool", [X], {"kernel_shape": [2, 2], "pads": [1]}, "pads must be 4 numbers"),
    "indices": ("MaxUnpool", [PAIR, X.astype(int)], {"kernel_shape": [2, 2]}, "I has shape"),
    "output_shape": (
        "MaxUnpool",
        [PAIR, PAIR.astype(int), SIZES],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        r"smaller than \[1, 1, 4, 4\]",
    ),
    "rois": ("MaxRoiPool", [X, X[0, 0]], {"pooled_shape": [1, 1]}, "rois must be"),
    "image": (
        "MaxRoiPool",
        [X, np.array([[-1, 0, 0, 1, 1]], np.float32)],
        {"pooled_shape": [1, 1]},
        "out of range",
    ),
    "no bins": (
        "MaxRoiPool",
        [X, np.zeros((1, 5), np.float32)],
        {"pooled_shape": [1, 0]},
        "pooled_shape must be",
    ),
    "places": (
        "MaxUnpool",
        [PAIR, PAIR.astype(int) - 1],
        {"kernel_shape": [2, 2]},
        "out of range",
    ),
    "places too large": (
        "MaxUnpool",
        [PAIR, PAIR.astype(int) + 9],
        {"kernel_shape": [2, 2]},
        "out of range",
    ),
    "regions": (
        "RoiAlign",
        [X, np.zeros((2, 5), np.float32), np.zeros(2, int)],
        {},
        r"not \[2, 5\] and \[2\]",
    ),
    "image of a region": ("RoiAlign", [X, X[0, 0], np.zeros(4, int) - 1], {}, "out of range"),
    "height": (
        "RoiAlign",
        [X, X[0, 0], np.zeros(4, int)],
        {"output_height": -1},
        "output_height and",
    ),
    "mode": ("RoiAlign", [X, X[0, 0], np.zeros(4, int)], {"mode": "sum"}, "mode is 'sum'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    op_type, inputs, attributes, message = REFUSED[name]
    with pytest.raises(NodeError, match=message):
        outputs_of("called", op_type, inputs, attributes, opset=18)


def test_indices_are_not_computed_if_nobody_asks():
    assert len(model_of("MaxPool", [X], {"kernel_shape": [2, 2]}, opset=8)(X)) == 1
