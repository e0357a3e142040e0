"""Images of other libraries as tensors, and back."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, PackageNotInstalledError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RNG = np.random.default_rng(6)
RGBA = RNG.integers(0, 256, (3, 4, 4)).astype(np.uint8)
RGB, GRAY, WITH_ALPHA = RGBA[..., :3], RGBA[..., 0], RGBA[..., 2:]
BYTES = RGBA.tobytes()


class Interface:
    """An image of another library, with NumPy's array interface."""

    array = RGB.copy()
    __array_interface__ = array.__array_interface__


def opaque(levels: Any) -> np.ndarray:
    """Return RGBA of gray [h, w] or RGB [h, w, 3] levels."""
    color = np.stack([levels] * 3, -1) if np.ndim(levels) == 2 else np.asarray(levels)
    return np.concatenate([color, np.full((*color.shape[:2], 1), 255)], -1)


SOURCES = {  # what it is made of, and its red, green, blue and alpha
    "strided": (RGBA[::-1, ::2], RGBA[::-1, ::2]),
    "lists": (RGB.tolist(), opaque(RGB)),
    "a tensor": (tp.asarray, opaque(RGB)),
    "an interface": (Interface(), opaque(RGB)),
    "bytes": (SimpleNamespace(data=BYTES, width=4, height=3), RGBA),
    "a mapping": ({"data": bytearray(BYTES), "width": 4, "height": 3}, RGBA),
    "flat bytes": (SimpleNamespace(data=RGBA.ravel(), width=4, height=3), RGBA),
}


@pytest.mark.parametrize("what", SOURCES)
def test_from_pixels(what: str) -> None:
    source, rgba = SOURCES[what]
    for count in (1, 2, 3, 4):
        image = tp.image.from_pixels(source(RGB) if source is tp.asarray else source, count)
        assert (image.dtype, image.shape) == (tp.int32, (*rgba.shape[:2], count))
        np.testing.assert_array_equal(image.numpy(), rgba[..., :count])


MODES = ["1", "L", "LA", "RGB", "RGBA", "P", "CMYK", "YCbCr", "HSV", "I", "F"]


@pytest.mark.parametrize("mode", MODES)
def test_pillow_images_look_the_same(mode: str) -> None:
    pillow = pytest.importorskip("PIL.Image")
    levels = RGB // 86 * 85  # few colours, for a palette
    image = pillow.fromarray(levels)
    converted = (image.convert("L") if mode in ("I", "F") else image).convert(mode)
    found = tp.image.from_pixels(converted, 4).numpy()
    np.testing.assert_array_equal(found, np.asarray(converted.convert("RGBA")))
    # The kernel takes any image; only palettes and other colours it cannot know.
    if mode in ("L", "RGB", "RGBA", "1"):
        direct = tp.run_kernel("FromPixels", {"pixels": converted}, {"num_channels": 4})
        np.testing.assert_array_equal(direct.numpy(), found)


DRAWN = {  # what is drawn, and its red, green, blue and alpha
    "gray": (GRAY, opaque(GRAY)),
    "rgba": (RGBA, RGBA),
}


@pytest.mark.parametrize("what", DRAWN)
def test_to_pixels_and_draw(what: str) -> None:
    image, rgba = DRAWN[what]
    pixels = tp.image.to_pixels(image)
    assert (pixels.dtype, pixels.shape) == (tp.uint8, rgba.shape)
    np.testing.assert_array_equal(pixels.numpy(), rgba)
    np.testing.assert_array_equal(tp.run_kernel("Draw", [image]).numpy(), rgba)
    pytest.importorskip("PIL")
    picture = tp.image.draw(image)
    assert picture.mode == "RGBA"
    np.testing.assert_array_equal(np.asarray(picture), rgba)
    assert picture._repr_png_().startswith(b"\x89PNG")  # what a notebook shows


def test_there_and_back() -> None:
    np.testing.assert_array_equal(tp.image.from_pixels(tp.image.to_pixels(RGB)).numpy(), RGB)
    np.testing.assert_array_equal(tp.image.to_pixels(tp.image.from_pixels(RGBA, 4)).numpy(), RGBA)


def test_alpha() -> None:
    assert tp.image.to_pixels(RGB, alpha=0.7)[0, 0, 3].item() == 179  # as JavaScript rounds
    assert tp.image.to_pixels(RGBA, alpha=0.7)[0, 0, 3].item() == RGBA[0, 0, 3]
    options = {"options": {"image_options": {"alpha": 0.5}}}
    assert tp.run_kernel("Draw", [RGB], options)[0, 0, 3].item() == 128


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    hint = r'draw needs Pillow.*pip install "tensorplug\[image\]"'
    with pytest.raises(PackageNotInstalledError, match=hint):
        tp.image.draw(GRAY)
    assert tp.image.to_pixels(GRAY).shape == (3, 4, 4)


BAD = {  # error: call, what the message says
    ShapeError: [
        (
            lambda: tp.image.from_pixels(np.ones((2, 2, 5))),
            "FromPixels(pixels=float64[2,2,5]): pixels must have 1 to 4 channels, got 5",
        ),
        (
            lambda: tp.image.from_pixels(np.ones((1, 2, 2, 3))),
            "pixels must have shape [height, width] or [height, width, channels]",
        ),
        (
            lambda: tp.image.to_pixels(WITH_ALPHA),
            "image must have shape [height, width] or [height, width, 1, 3 or 4]",
        ),
    ],
    DTypeError: [
        (
            lambda: tp.image.from_pixels(np.ones((2, 2), np.int64)),
            "input 'pixels' is int64[2,2], but its dtype must be one of bfloat16, bool, float16",
        ),
    ],
    ArgumentError: [
        (
            lambda: tp.image.from_pixels(RGB, 5),
            "attribute 'num_channels': must be from 1 to 4, got 5",
        ),
        (
            lambda: tp.image.from_pixels({"data": BYTES, "width": 4, "height": 4}),
            "from_pixels: 4 by 4 pixels need 64 bytes, four per pixel, got 48",
        ),
        (
            lambda: tp.image.from_pixels({"data": [1, 2], "width": 1, "height": 1}),
            "from_pixels: data must be bytes, got list",
        ),
        (lambda: tp.image.from_pixels(None), "input 'pixels' is missing"),
        (
            lambda: tp.image.to_pixels(np.float32([[0.5, 1.5]])),
            "to_pixels: levels of float32 must lie in [0, 1], got 0.5 to 1.5",
        ),
        (
            lambda: tp.image.to_pixels([[-1, 255]]),
            "to_pixels: levels of int32 must lie in [0, 255], got -1 to 255",
        ),
        (
            lambda: tp.image.to_pixels(GRAY, alpha=2),
            "attribute 'options': alpha must be a number from 0 to 1, got 2",
        ),
        (
            lambda: tp.run_kernel("Draw", [GRAY], {"options": {"alpha": 1}}),
            "attribute 'options': must be None or",
        ),
    ],
}


test_bad_calls = refused(BAD)
