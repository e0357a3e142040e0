"""Cases for turned, mirrored and projected images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, DTypeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.image import warping as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(specs.FLIP_LEFT_RIGHT, oracle=oracle.flip_left_right)
def flip_left_right(corpus: Corpus) -> Iterator[Case]:
    """Even and odd widths; values do not change."""
    for shape in ((1, 2, 4, 1), (2, 3, 5, 3), (1, 1, 1, 1), (1, 2, 0, 1), (0, 2, 3, 1)):
        yield Case("x".join(map(str, shape)), (corpus.ordinary(shape),))
    yield Case("edges", (corpus.edges().reshape(1, 1, -1, 1),))
    yield Case("large", (corpus.ordinary((1, 131, 101, 5)),))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((2, 3, 4, 1)),), layout=layout)
    yield Case("rank 3", (corpus.ordinary((2, 3, 1)),), expected=ShapeError)


@cases.of(specs.ROTATE_WITH_OFFSET, oracle=oracle.rotate_with_offset)
def rotate_with_offset(corpus: Corpus) -> Iterator[Case]:
    """Quarter turns and others, about other centres, over other fills."""
    x = corpus.ordinary((2, 5, 6, 3))
    for radians in (0, math.pi / 2, -math.pi / 2, math.pi, math.pi / 4, 0.3, -2.0):
        yield Case(f"by {radians:.2f}", (x,), {"radians": radians})
    turned = {"radians": 0.6}
    for center in (0, 1.0, (0.25, 0.75), (-1, 2)):
        yield Case(f"about {center}", (x,), {**turned, "center": center})
    yield Case("filled", (x,), {**turned, "fill_value": 7})
    yield Case("filled by channel", (x,), {**turned, "fill_value": (1, 2, 3)})
    if corpus.dtype is not dt.int8:  # whose dtype has no 255
        rgba = corpus.ordinary((1, 3, 4, 4))
        yield Case("opaque", (rgba,), {**turned, "fill_value": (1, 2, 3)})
    yield Case("one channel", (x[..., :1],), {**turned, "fill_value": (1, 2, 3)})
    yield Case("one pixel", (corpus.ordinary((1, 1, 1, 1)),), turned)
    for shape in ((0, 3, 4, 1), (1, 0, 4, 1), (1, 3, 4, 0)):
        yield Case("x".join(map(str, shape)), (corpus.ordinary(shape),), turned)
    yield Case("large", (corpus.ordinary((1, 61, 83, 13)),), turned)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (x,), turned, layout=layout)
    yield Case("edges", (corpus.edges().reshape(1, 1, -1, 1),), {"radians": math.pi})
    yield Case("edges in their places", (corpus.edges().reshape(1, 1, -1, 1),), {"radians": 0})
    wrong: tuple[tuple[str, Array, dict[str, Any], type[Exception]], ...] = (
        ("rank 3", x[0], turned, ShapeError),
        ("no angle", x, {}, ArgumentError),
        ("endless angle", x, {"radians": math.inf}, ArgumentError),
        ("two fills", x, {**turned, "fill_value": (1, 2)}, ArgumentError),
        ("three centres", x, {**turned, "center": (1, 2, 3)}, ArgumentError),
    )
    for name, image, options, error in wrong:
        yield Case(name, (image,), options, expected=error)


# a0, a1, a2, b0, b1, b2, c0, c1 in eighths, so that whole numbers are blended exactly
_TRANSFORMS: dict[str, tuple[float, ...]] = {
    "identity": (1, 0, 0, 0, 1, 0, 0, 0),
    "whole steps": (1, 0, 1, 0, 1, -2, 0, 0),
    "half steps": (1, 0, 0.5, 0, 1, -1.5, 0, 0),
    "smaller": (2, 0, 0, 0, 2, 0, 0, 0),
    "larger": (0.5, 0, 0.25, 0, 0.5, 0.125, 0, 0),
    "mirrored": (-1, 0, 4, 0, -1, 3, 0, 0),
    "sheared": (1, 0.25, -1, -0.5, 1, 1, 0, 0),
    "far": (1, 0, 37.5, 0, 1, -41.25, 0, 0),
    "very far": (1, 0, 1e9, 0, 1, -1e9, 0, 0),
    "nowhere": (1, 0, math.inf, 0, 1, math.nan, 0, 0),
    "horizon": (1, 0, 0, 0, 1, 0, -0.5, 0),
}
_PROJECTED = (0.9, 0.13, -0.43, -0.11, 1.07, 0.3, 0.05, -0.04)


def _one(*row: float) -> Array:
    return np.array([row], np.float32)


_FEW = ("half steps", "sheared")
_SEVERAL = (*_FEW, "identity", "larger", "far", "horizon")
_REAL = sorted(dt.REAL, key=lambda dtype: dtype.name)


@cases.of(specs.TRANSFORM, oracle=oracle.transform, dtypes=_REAL)
def transform(corpus: Corpus) -> Iterator[Case]:
    """Every fill mode at, between and beyond the pixels; infinitely far away."""
    x = corpus.ordinary((1, 4, 5, 2))
    for mode in ("constant", "reflect", "wrap", "nearest"):
        for how in ("nearest", "bilinear"):
            options = {"interpolation": how, "fill_mode": mode, "fill_value": 3}
            for name, row in _TRANSFORMS.items():
                # At so many repetitions float32 cannot tell which pixel that is.
                unknown = name == "very far" and mode in ("reflect", "wrap")
                tried = how == "nearest" or name in _SEVERAL if corpus.floating else name in _FEW
                if tried and not unknown:
                    yield Case(f"{name}, {mode}, {how}", (x, _one(*row)), options)
            if corpus.floating:
                yield Case(f"projected, {mode}, {how}", (x, _one(*_PROJECTED)), options)
            thin = corpus.ordinary((1, 1, 3, 1))
            yield Case(f"thin, {mode}, {how}", (thin, _one(*_TRANSFORMS["sheared"])), options)
    yield from _others(corpus, x)


def _others(corpus: Corpus, x: Array) -> Iterator[Case]:
    half = _one(*_TRANSFORMS["half steps"])
    two = np.concatenate([half, _one(*_TRANSFORMS["mirrored"])])
    blended = {"interpolation": "bilinear"}
    yield Case("defaults", (x, half))
    yield Case("larger result", (x, half), {**blended, "output_shape": (7, 3)})
    pair = corpus.ordinary((2, 3, 4, 1))
    yield Case("one each", (pair, two), blended)
    yield Case("one for all", (pair, half), blended)
    yield Case("no images", (pair[:0], half), blended)
    yield Case("no result", (pair, half), {"output_shape": (0, 2)})
    wide = corpus.ordinary((1, 9, 8, 33))
    yield Case("large", (wide, half), {**blended, "output_shape": (45, 47)})
    for layout in ("transposed", "sliced"):
        yield Case(layout, (pair, two), blended, layout=layout)
    if corpus.floating:
        spotted = x.copy()
        spotted[0, 1, 2, 0] = np.nan
        yield Case("a NaN", (spotted, half), blended)
        yield Case("own dtype", (x, corpus.of(half)), blended)
    wrong: tuple[tuple[str, tuple[Array, Array], dict[str, Any], type[Exception]], ...] = (
        ("rank 3", (x[0], half), {}, ShapeError),
        ("seven numbers", (x, half[:, :7]), {}, ShapeError),
        ("two transforms", (x, two), {}, ShapeError),
        ("cubic", (x, half), {"interpolation": "bicubic"}, ArgumentError),
        ("unknown mode", (x, half), {"fill_mode": "mirror"}, ArgumentError),
        ("complex", (x, half.astype(np.complex64)), {}, DTypeError),
    )
    for name, inputs, options, error in wrong:
        yield Case(name, inputs, options, expected=error)


# Gradients.


@cases.gradients(specs.FLIP_LEFT_RIGHT, "image")
def flip_left_right_points(corpus: Corpus) -> Iterator[Case]:
    yield Case("odd", (corpus.ordinary((2, 2, 3, 1)),))
    yield Case("no images", (corpus.ordinary((0, 2, 3, 1)),))


@cases.gradients(specs.ROTATE_WITH_OFFSET, "image")
def rotate_with_offset_points(corpus: Corpus) -> Iterator[Case]:
    x = corpus.ordinary((2, 3, 4, 1))
    yield Case("turned", (x,), {"radians": 0.5, "fill_value": 2})
    yield Case("away", (x,), {"radians": 3.0, "center": (4, 5)})
    yield Case("about a corner", (x,), {"radians": 0.3, "center": (-1, 2)})
    yield Case("no images", (x[:0],), {"radians": 0.5})


@cases.gradients(specs.TRANSFORM, "image", "transforms", near_only="slopes jump at pixels")
def transform_points(corpus: Corpus) -> Iterator[Case]:
    """Positions between pixels, where the value is smooth in the transform."""
    x = corpus.ordinary((2, 3, 3, 1))
    first, other = (
        corpus.of([_PROJECTED]),
        corpus.of([[1.11, 0.23, -1.3, 0.13, 0.82, 1.43, 0, 0.02]]),
    )
    for mode in ("constant", "reflect", "wrap", "nearest"):
        for how in ("nearest", "bilinear"):
            options: dict[str, Any] = {"interpolation": how, "fill_mode": mode, "fill_value": 1.5}
            if how == "bilinear" or mode == "reflect":
                options["output_shape"] = (2, 3)
                yield Case(f"{mode}, {how}", (x, np.concatenate([first, other])), options)
    yield Case("one for all", (x, other), {"interpolation": "bilinear"})
    yield Case("no images", (x[:0], other), {"interpolation": "bilinear"})
