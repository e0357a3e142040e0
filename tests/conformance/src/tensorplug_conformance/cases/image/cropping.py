"""Cases for crops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.image import cropping as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# y1, x1, y2, x2: the whole, a quarter, beyond the edges, turned, mirrored, a point, outside
_BOXES = np.array(
    [
        [0, 0, 1, 1],
        [0.25, 0.5, 0.75, 1],
        [-0.5, -0.25, 1.5, 1.25],
        [1, 0, 0, 1],
        [0, 1, 1, 0],
        [0.5, 0.5, 0.5, 0.5],
        [2, 2, 3, 3],
    ],
    np.float32,
)
# Positions half way between two pixels of an image of 5 x 9.
_HALFWAY = np.array([[0.125, 0.0625, 0.625, 0.5625], [0.375, 0.1875, 0.875, 0.9375]], np.float32)
_UNEVEN = np.array([[0.1, 0.2, 0.83, 0.71], [0.37, -0.3, 0.9, 1.2]], np.float32)


def _images(*numbers: int, dtype: str = "int32") -> Array:
    return np.array(numbers, dtype)


# An infinite pixel may be multiplied by a weight of 0 or left out; boxes are coordinates.
@cases.of(specs.CROP_AND_RESIZE, oracle=oracle.crop_and_resize, ordinary=("image", "boxes"))
def crop_and_resize(corpus: Corpus) -> Iterator[Case]:
    """Positions on a pixel, between two, on the edge and outside; indices without an image."""
    x = corpus.ordinary((2, 5, 9, 2))
    which = _images(0, 1, 0, 1, 0, 1, 0)
    for method in ("bilinear", "nearest"):
        options: dict[str, Any] = {"crop_size": (3, 5), "method": method}
        yield Case(f"{method} boxes", (x, _BOXES, which), options)
        filled = {**options, "extrapolation_value": -1.5}
        yield Case(f"{method} filled", (x, _BOXES, which), filled)
        uneven = {**options, "crop_size": (4, 7)}
        yield Case(f"{method} uneven", (x, _UNEVEN, _images(1, 0)), uneven)
        yield Case(f"{method} more pixels", (x, _BOXES, which), {**options, "crop_size": (5, 6)})
        one = {**options, "crop_size": (1, 1)}
        yield Case(f"{method} one pixel", (x, _BOXES[:5], which[:5]), one)
        row = {**options, "crop_size": (1, 4)}
        yield Case(f"{method} one row", (x, _BOXES, which), row)
        tiny = corpus.ordinary((1, 1, 1, 3))
        yield Case(f"{method} of one pixel", (tiny, _BOXES[:3], _images(0, 0, 0)), options)
        absent = _images(-1, 2, 7)
        yield Case(f"{method} absent images", (x, _BOXES[:3], absent), filled)
        yield Case(f"{method} absent beside one", (tiny, _BOXES[:3], absent), filled)
        yield Case(
            f"{method} halfway", (x, _HALFWAY, _images(0, 1)), {**options, "crop_size": (2, 2)}
        )
        spotted = x.copy()
        spotted[0, 2, 4, 0] = np.nan
        yield Case(f"{method} a NaN", (spotted, _BOXES[:2], _images(0, 0)), options)
    yield Case("defaults", (x, _BOXES, which), {"crop_size": (2, 2)})
    same = {"crop_size": (2, 2)}
    yield Case("no boxes", (x, _BOXES[:0], which[:0]), same)
    yield Case("no pixels", (x, _BOXES, which), {"crop_size": (0, 2)})
    yield Case("own dtype", (x, corpus.of(_BOXES), which), same)
    yield Case("int64", (x, _BOXES[:1], _images(1, dtype="int64")), same)
    deep = corpus.ordinary((1, 3, 4, 64))
    yield Case("large", (deep, _BOXES[1:2], _images(0)), {"crop_size": (32, 33)})
    for layout in ("transposed", "sliced"):
        yield Case(layout, (x, _BOXES, which), same, layout=layout)
    yield from _wrong(x, which)


def _wrong(x: Array, which: Array) -> Iterator[Case]:
    size = {"crop_size": (2, 2)}
    rows: tuple[tuple[str, tuple[Array, ...], dict[str, Any], type[Exception]], ...] = (
        ("rank 3", (x[0], _BOXES, which), size, ShapeError),
        ("three edges", (x, _BOXES[:, :3], which), size, ShapeError),
        ("too few images", (x, _BOXES, which[:3]), size, ShapeError),
        ("float images", (x, _BOXES, which.astype(np.float32)), size, DTypeError),
        ("one size", (x, _BOXES, which), {"crop_size": 2}, ArgumentError),
        ("method", (x, _BOXES, which), {**size, "method": "cubic"}, ArgumentError),
        ("nothing there", (x[:, :0], _BOXES, which), size, ShapeError),
    )
    for name, inputs, options, error in rows:
        yield Case(name, inputs, options, expected=error)


@cases.gradients(specs.CROP_AND_RESIZE, "image", "boxes")
def crop_and_resize_points(corpus: Corpus) -> Iterator[Case]:
    """Positions between pixels, where the value is smooth in the box."""
    x = corpus.ordinary((2, 3, 4, 1))
    boxes = corpus.of([[0.12, 0.07, 0.93, 0.84], [0.9, 0.31, 0.23, 0.66]])
    for method in ("bilinear", "nearest"):
        for size in ((2, 3), (1, 2)):
            options: dict[str, Any] = {"crop_size": size, "method": method}
            yield Case(f"{method} {size[0]}x{size[1]}", (x, boxes, _images(1, 0)), options)
    beyond = corpus.of([[-0.37, 0.11, 0.87, 1.43]])
    options = {"crop_size": (3, 3), "extrapolation_value": 2.0}
    yield Case("beyond", (x, beyond, _images(1)), options)
    yield Case("absent", (x, boxes, _images(0, 2)), {"crop_size": (2, 2)})
    yield Case("one image twice", (x, boxes, _images(1, 1)), {"crop_size": (2, 2)})
    yield Case("no boxes", (x, boxes[:0], _images()), {"crop_size": (2, 2)})
    # The whole image: every position is on a pixel, where the slope is that to the next one.
    squares = corpus.of(np.arange(5) ** 2).reshape(1, 1, 5, 1)
    gradients = (corpus.of(np.ones((1, 1, 5, 1))), corpus.of([[0, 30, 0, 62]]))
    whole = (squares, corpus.of([[0, 0, 1, 1]]), _images(0))
    yield Case("on pixels", whole, {"crop_size": (1, 5)}, expected=gradients)
