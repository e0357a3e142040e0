"""The image of the examples: a lighthouse at dusk, drawn with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[Any]]
Mask = np.ndarray[Any, np.dtype[Any]]


SAMPLES = 3  # along each axis of a pixel: their mean makes edges smooth
HORIZON = 0.66  # coordinates go from 0, at the left or the top, to 1

# Rows of letters, 5 bits each, from the highest.
LETTERS = {
    "T": (31, 4, 4, 4, 4, 4, 4),
    "E": (31, 16, 16, 30, 16, 16, 31),
    "N": (17, 25, 21, 21, 19, 17, 17),
    "S": (15, 16, 16, 14, 1, 1, 30),
    "O": (14, 17, 17, 17, 17, 17, 14),
    "R": (30, 17, 17, 30, 20, 18, 17),
    "P": (30, 17, 17, 30, 16, 16, 16),
    "L": (16, 16, 16, 16, 16, 16, 31),
    "U": (17, 17, 17, 17, 17, 17, 14),
    "G": (14, 17, 16, 23, 17, 17, 15),
}


def draw(size: int = 256) -> Floats:
    """Return the image, [size, size, 3], with numbers from 0 to 1."""
    steps = (np.arange(size * SAMPLES, dtype=np.float32) + 0.5) / (size * SAMPLES)
    y, x = np.meshgrid(steps, steps, indexing="ij")
    image = _sky_and_sea(x, y)
    _paint(
        image,
        _inside(x, y, [(0, 0.6), (0.2, 0.57), (0.42, 0.63), (0.5, 0.7), (0, 0.74)]),
        0x2B2530,
    )
    _paint_lighthouse(image, x, y)
    _paint_boat(image, x, y)
    _paint(image, _text("TENSORPLUG", x, y, (0.075, 0.86), 0.0142), 0xF6EFE0)
    fine = image.reshape(size, SAMPLES, size, SAMPLES, 3)
    return np.asarray(fine.mean(axis=(1, 3)), np.float32)


def _sky_and_sea(x: Floats, y: Floats) -> Floats:
    """Return a sky that is bright above the horizon, stars, a moon, and the sea below."""
    top, low, deep = _color(0x16335C), _color(0xF3A46B), _color(0x0E2A47)
    height = (np.clip(y / HORIZON, 0, 1) ** 2.2)[..., None]
    image = top + (low - top) * height
    rng = np.random.default_rng(3)
    for across, down in rng.uniform((0, 0), (1, 0.4), (45, 2)):
        _paint(image, (x - across) ** 2 + (y - down) ** 2 < 0.0024**2, 0xFFFFFF)
    _paint(image, (x - 0.78) ** 2 + (y - 0.2) ** 2 < 0.07**2, 0xFBF3D9)
    for across, down, radius in ((0.76, 0.18, 0.014), (0.8, 0.22, 0.02), (0.81, 0.17, 0.009)):
        _paint(image, (x - across) ** 2 + (y - down) ** 2 < radius**2, 0xDDD0AE)
    depth = np.clip((y - HORIZON) / (1 - HORIZON), 0, 1)
    waves = 0.5 + 0.5 * np.sin(2 * np.pi * (14 * depth**0.7 + 0.6 * np.sin(9 * x + 5 * depth)))
    path = np.exp(-(((x - 0.78) / (0.03 + 0.1 * depth)) ** 2))
    shine = ((0.18 + 0.75 * path) * waves * (1 - 0.6 * depth))[..., None]
    sea = deep + (low - deep) * shine
    return np.where((y > HORIZON)[..., None], sea, image).astype(np.float32)


def _paint_lighthouse(image: Floats, x: Floats, y: Floats) -> None:
    beam = _inside(x, y, [(0.25, 0.2), (1.0, 0.02), (1.0, 0.14)])
    image[beam] += 0.35 * (1 - np.minimum(x[beam], 1))[:, None] * _color(0xFFE9A8)
    np.clip(image, 0, 1, out=image)
    tower = _inside(x, y, [(0.215, 0.25), (0.285, 0.25), (0.315, 0.62), (0.185, 0.62)])
    _paint(image, tower, 0xF4EFE6)
    _paint(image, tower & ((y * 27 / 2 % 1) < 0.5), 0xC2352B)
    _paint(image, tower & (x > 0.27) & (y > 0.25), 0x8E2F30, opacity=0.35)
    _paint(image, _inside(x, y, [(0.2, 0.235), (0.3, 0.235), (0.3, 0.25), (0.2, 0.25)]), 0x26222B)
    _paint(
        image,
        _inside(x, y, [(0.222, 0.17), (0.278, 0.17), (0.278, 0.235), (0.222, 0.235)]),
        0xFFE28A,
    )
    for bar in (0.234, 0.25, 0.266):
        _paint(image, (abs(x - bar) < 0.0025) & (y > 0.17) & (y < 0.235), 0x26222B)
    _paint(image, _inside(x, y, [(0.25, 0.11), (0.295, 0.17), (0.205, 0.17)]), 0x8C231D)
    _paint(image, (abs(x - 0.25) < 0.013) & (y > 0.56) & (y < 0.62), 0x26222B)


def _paint_boat(image: Floats, x: Floats, y: Floats) -> None:
    _paint(
        image, _inside(x, y, [(0.56, 0.75), (0.86, 0.75), (0.81, 0.81), (0.61, 0.81)]), 0x5B2E20
    )
    _paint(image, (abs(y - 0.765) < 0.006) & (x > 0.57) & (x < 0.85), 0xE9D8B4)
    _paint(image, (abs(x - 0.7) < 0.004) & (y > 0.38) & (y < 0.75), 0x1F1A1A)
    mainsail = _inside(x, y, [(0.71, 0.4), (0.84, 0.73), (0.71, 0.73)])
    _paint(image, mainsail, 0xF7F2E7)
    _paint(image, _inside(x, y, [(0.69, 0.44), (0.69, 0.73), (0.585, 0.73)]), 0xDFE6EC)
    for seam in (0.5, 0.57, 0.64):
        _paint(image, mainsail & (abs(y - seam) < 0.003), 0x9A8F80)


def _inside(x: Floats, y: Floats, corners: list[tuple[float, float]]) -> Mask:
    """Return which points lie in a convex polygon, with corners clockwise on the screen."""
    inside = np.ones(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        inside &= (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) >= 0
    return inside


def _text(text: str, x: Floats, y: Floats, at: tuple[float, float], dot: float) -> Mask:
    """Return which points lie in letters of square dots, 7 high and 5 wide, 6 apart."""
    column = np.floor((x - at[0]) / dot).astype(int)
    row = np.floor((y - at[1]) / dot).astype(int)
    bits = np.zeros((7, 6 * len(text)), bool)
    for number, letter in enumerate(text):
        for line, pattern in enumerate(LETTERS[letter]):
            bits[line, 6 * number : 6 * number + 5] = [pattern >> 4 - k & 1 for k in range(5)]
    known = (row >= 0) & (row < 7) & (column >= 0) & (column < bits.shape[1])
    known &= bits[np.clip(row, 0, 6), np.clip(column, 0, bits.shape[1] - 1)]
    return known


def _paint(image: Floats, where: Mask, color: int, opacity: float = 1.0) -> None:
    image[where] += opacity * (_color(color) - image[where])


def _color(code: int) -> Floats:
    """Return red, green and blue, from 0 to 1, of a code such as 0xFFFFFF."""
    return np.array([code >> 16 & 255, code >> 8 & 255, code & 255], np.float32) / 255
