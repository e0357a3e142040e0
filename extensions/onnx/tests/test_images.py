"""Images: sizes, old versions, dtypes, files."""

from __future__ import annotations

import builtins
import io

import numpy as np
import pytest

from tensorplug_onnx import NodeError, UnsupportedError

from .one_operator import assert_same, model_of, outputs_of

X = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3) ** 2
NONE = np.array([], np.float32)


def scales(*numbers):
    return np.array(numbers, np.float32)


def between(x, places, axis):
    """Return x read at places on an axis, linearly; beyond the ends, its ends."""
    places = np.clip(places, 0, x.shape[axis] - 1)
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    shape = [1] * x.ndim
    shape[axis] = -1
    weight = (places - low).reshape(shape)
    return (x.take(low, axis) * (1 - weight) + x.take(high, axis) * weight).astype(np.float32)


HALVES = (np.arange(5) + 0.5) * 3 / 5 - 0.5  # of 3 elements, at the new size 5

# Operator, inputs, which of them are read on the host, attributes, opset, expected output.
CASES = {
    "Upsample 7": ("Upsample", [X], {"scales": [1.0, 1.0, 1.0, 2.0]}, 7, X.repeat(2, 3)),
    "Upsample 9": ("Upsample", [X, scales(1, 1, 3, 1)], {}, 9, X.repeat(3, 2)),
    "Upsample 9, linear": (
        "Upsample",
        [X, scales(1, 1, 1, 2)],
        {"mode": "linear"},
        9,
        between(X, np.arange(6) / 2, 3),
    ),
    "Upsample 7, bilinear": (
        "Upsample",
        [X],
        {"mode": "bilinear", "scales": [1.0, 1.0, 2.0, 2.0]},
        7,
        between(between(X, np.arange(4) / 2, 2), np.arange(6) / 2, 3),
    ),
    "Resize 10": ("Resize", [X, scales(1, 1, 1, 0.7)], {}, 10, X[..., [0, 1]]),
    "Resize 11": (
        "Resize",
        [X, NONE, NONE, np.array([1, 2, 2, 5])],
        {"mode": "linear"},
        11,
        between(X, HALVES, 3),
    ),
    "Resize 11, cropped": (
        "Resize",
        [X, scales(0, 0, 0, 0.5, 1, 1, 1, 1.5), NONE, np.array([1, 2, 2, 3])],
        {
            "mode": "linear",
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": 7.0,
        },
        11,
        np.concat([X[..., 1:], np.full((1, 2, 2, 1), 7, np.float32)], 3),
    ),
    "Resize 13": ("Resize", [X, None, scales(1, 1, 1, 2)], {}, 13, X.repeat(2, 3)),
    "Resize 18, one axis": (
        "Resize",
        [X, None, None, np.array([5])],
        {"axes": [-1], "mode": "linear"},
        18,
        between(X, HALVES, 3),
    ),
    # One factor for both axes: 2 and 1.5 are possible.
    "Resize 18, not larger": (
        "Resize",
        [X, None, None, np.array([4, 5])],
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger", "mode": "nearest"},
        18,
        X[:, :, [0, 0, 1]][..., [0, 0, 1, 2, 2]],
    ),
    # The height must stay, so the width does.
    "Resize 18, not larger in height": (
        "Resize",
        [X, None, None, np.array([2, 6])],
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger", "mode": "nearest"},
        18,
        X,
    ),
    "Resize to the same size": ("Resize", [X, None, None, np.array(X.shape)], {}, 19, X),
    # 0 and 255, read at 1/4 and 3/4: 63.75 and 191.25 are truncated.
    "Resize of integers": (
        "Resize",
        [np.array([[0, 255]], np.uint8), None, scales(1, 2)],
        {"mode": "linear"},
        13,
        np.array([[0, 63, 191, 255]], np.uint8),
    ),
    # Cubic interpolation goes beyond 0 and 255 beside a step; a quarter from its foot, the
    # weights of the two elements above it are 67 / 256 and -9 / 256.
    "Resize of integers, limited": (
        "Resize",
        [np.array([[0, 0, 0, 255, 255, 255]], np.uint8), None, scales(1, 2)],
        {"mode": "cubic"},
        13,
        np.array([[0, 0, 0, 0, 0, 57, 197, 255, 255, 255, 255, 255]], np.uint8),
    ),
    "GridSample 16": (
        "GridSample",
        [X, np.array([[[[-1, -1], [0, -1], [1, 1]]]], np.float32)],
        {"mode": "bilinear", "align_corners": 1},
        16,
        np.stack([X[:, :, 0, 0], X[:, :, 0, 1], X[:, :, 1, 2]], -1)[:, :, None],
    ),
}


@pytest.mark.parametrize("way", ["called", "constant", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_images(name, way):
    op_type, inputs, attributes, opset, expected = CASES[name]
    (found,) = outputs_of(way, op_type, inputs, attributes, opset=opset)
    assert str(found.dtype) == str(expected.dtype)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


SIZES = np.array([1, 2, 2, 5])

# Inputs, attributes, and what the message says.
REFUSED = {
    "neither": ([X, None, NONE], {}, "either scales or sizes"),
    "both": ([X, None, scales(1, 1, 1, 2), SIZES], {}, "either scales or sizes"),
    "numbers": ([X, None, scales(1, 2)], {}, "2 scales or sizes for 4 axes"),
    "roi": (
        [X, None, None, SIZES],
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
        "roi must have 8 numbers",
    ),
    "axes": ([X, None, None, SIZES[2:]], {"axes": [3, 4]}, r"in \[-4, 4\), are \[3, 4\]"),
    "axes twice": ([X, None, None, SIZES[2:]], {"axes": [3, -1]}, "must be different"),
    "mode": ([X, None, None, SIZES], {"mode": "round"}, "round"),
    "scale": ([X, None, scales(1, 1, 1, -2)], {}, "-2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    inputs, attributes, message = REFUSED[name]
    with pytest.raises(NodeError, match=message):
        outputs_of("called", "Resize", inputs, attributes, opset=18)


PIXELS = np.array([[[1, 2, 3], [250, 100, 0]], [[9, 9, 9], [0, 255, 128]]], np.uint8)


def file_of(pixels, kind="png"):
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


@pytest.mark.parametrize(
    ("pixel_format", "expected"),
    [
        ("RGB", PIXELS),
        ("BGR", PIXELS[..., ::-1]),
        # Luma of ITU-R 601.
        ("Grayscale", np.rint(PIXELS @ [0.299, 0.587, 0.114]).astype(np.uint8)[..., None]),
    ],
)
def test_decoded_pixels(pixel_format, expected):
    attributes = {"pixel_format": pixel_format}
    (found,) = outputs_of("called", "ImageDecoder", [file_of(PIXELS)], attributes, opset=20)
    assert_same(found, expected)


@pytest.mark.parametrize("kept", [0, 10, 1000])
def test_a_broken_image_is_refused(kept):
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8)
    with pytest.raises(NodeError, match="not an image, or a broken one"):
        outputs_of("called", "ImageDecoder", [file_of(noise)[:kept]], opset=20)


def test_without_pillow_the_message_says_what_to_install(monkeypatch):
    model, file = model_of("ImageDecoder", [file_of(PIXELS)], opset=20), file_of(PIXELS)
    plain = builtins.__import__

    def without_pillow(name, *args, **named):
        if name.split(".")[0] == "PIL":
            raise ImportError(name)
        return plain(name, *args, **named)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(UnsupportedError, match=r"pip install .tensorplug-onnx\[images\]"):
        model(file)
