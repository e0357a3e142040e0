"""Flips and parts of images: slices in NumPy, and places that a key chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def check(actual: Any, expected: Any, dtype: str) -> None:
    assert (actual.dtype.name, actual.shape) == (dtype, expected.shape)
    assert actual.tolist() == expected.tolist()


NUMBERED = np.arange(2 * 5 * 7 * 3).reshape(2, 5, 7, 3)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float32", "complex64", "bool"])
@pytest.mark.parametrize("single", [False, True])
def test_flips_and_middles(dtype, single):
    x = (NUMBERED[0] if single else NUMBERED).astype(dtype)
    check(tp.image.flip_left_right(x), x[..., ::-1, :], dtype)
    check(tp.image.flip_up_down(x), x[..., ::-1, :, :], dtype)
    check(tp.image.center_crop(x, (3, 3)), x[..., 1:4, 2:5, :], dtype)
    check(tp.image.center_crop(x, (2, 4)), x[..., 1:3, 1:5, :], dtype)  # one more at the end
    check(tp.image.center_crop(x, (5, 7)), x, dtype)
    check(tp.image.center_crop(x, (0, 7)), x[..., :0, :, :], dtype)


def find(part: np.ndarray, image: np.ndarray) -> tuple[int, int]:
    """Return the row and the column of an image's only part with these pixels."""
    height, width = part.shape[:2]
    rows, columns = (image.shape[at] - part.shape[at] + 1 for at in (0, 1))
    (found,) = [
        (row, column)
        for row in range(rows)
        for column in range(columns)
        if (image[row : row + height, column : column + width] == part).all()
    ]
    return found


def test_random_parts():
    key = tp.random.key(0)
    images = np.broadcast_to(NUMBERED[:1].astype(np.uint8), (600, 5, 7, 3))
    parts = tp.image.random_crop(key, images, (4, 5))
    assert (parts.dtype, parts.shape) == (tp.uint8, (600, 4, 5, 3))
    places = [find(part, images[0]) for part in parts.numpy()]
    counts = [places.count((row, column)) for row in range(2) for column in range(3)]
    assert sum(counts) == 600
    # Of six places 100 each are expected; five degrees of freedom pass 20.5 once in a thousand.
    assert sum((count - 100) ** 2 / 100 for count in counts) < 20.5
    again = tp.compile(lambda key, x: tp.image.random_crop(key, x, (4, 5)))(key, images)
    assert again.tolist() == parts.tolist()
    one = tp.image.random_crop(key, images[0], (4, 5))
    assert one.tolist() == parts[0].tolist()
    assert tp.image.random_crop(key, images[0], (5, 7)).tolist() == images[0].tolist()
    mapped = tp.vmap(lambda key, x: tp.image.random_crop(key, x, (4, 5)))(
        tp.random.split(key, 2), tp.asarray(images[:2])
    )
    each = tp.random.split(key, 2)
    for at in range(2):
        right = tp.image.random_crop(each[at], images[at], (4, 5))
        assert mapped[at].tolist() == right.tolist()
    for size in ((0, 7), (5, 0)):
        assert tp.image.random_crop(key, images[:2, :0, :0], (0, 0)).shape == (2, 0, 0, 3)
        assert tp.image.random_crop(key, images[:2], size).shape == (2, *size, 3)
