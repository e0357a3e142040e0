"""Cases for images as levels and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.image import pixels as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _image(corpus: Corpus, shape: tuple[int, ...]) -> Array:
    return corpus.ordinary(shape, -0.1, 1.1) if corpus.floating else corpus.ordinary(shape)


def _images(corpus: Corpus, channels: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    yield "rank 2", _image(corpus, (3, 5))
    for count in channels:
        yield f"{count} channels", _image(corpus, (3, 4, count))
    yield "empty", _image(corpus, (0, 4, 3))
    yield "edges", corpus.edges().reshape(1, -1)
    if corpus.floating:
        # Every half between two levels, and the numbers next to it.
        half = corpus.of((np.arange(256) + 0.5) / 255)
        infinity = corpus.of(np.inf)
        around = [np.nextafter(half, -infinity), half, np.nextafter(half, infinity)]
        yield "halves", np.stack(around)


@cases.of(specs.FROM_PIXELS, oracle=oracle.from_pixels)
def from_pixels(corpus: Corpus) -> Iterator[Case]:
    """Gray, gray with alpha, RGB and RGBA, into one to four channels."""
    for name, image in _images(corpus, (1, 2, 3, 4)):
        yield Case(name, (image,))
        for count in (1, 2, 4):
            yield Case(f"{name} to {count}", (image,), {"num_channels": count})
    yield Case("large", (_image(corpus, (131, 170, 3)),))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (_image(corpus, (3, 4, 3)),), layout=layout)
    wrong: tuple[tuple[str, tuple[int, ...], dict[str, Any], type[Exception]], ...] = (
        ("rank 1", (4,), {}, ShapeError),
        ("rank 4", (1, 2, 2, 3), {}, ShapeError),
        ("five channels", (2, 2, 5), {}, ShapeError),
        ("to five", (2, 2, 3), {"num_channels": 5}, ArgumentError),
        ("to none", (2, 2, 3), {"num_channels": 0}, ArgumentError),
    )
    for name, shape, options, error in wrong:
        yield Case(name, (_image(corpus, shape),), options, expected=error)


@cases.of(specs.DRAW, oracle=oracle.draw)
def draw(corpus: Corpus) -> Iterator[Case]:
    """Gray, RGB and RGBA; values out of range are clipped."""
    for name, image in _images(corpus, (1, 3, 4)):
        yield Case(name, (image,))
    x = _image(corpus, (2, 3, 3))
    for alpha in (0, 0.5, 0.7, 1):
        yield Case(f"alpha {alpha}", (x,), {"options": {"image_options": {"alpha": alpha}}})
    yield Case("no options", (x,), {"options": None})
    yield Case("large", (_image(corpus, (131, 170, 3)),))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (x,), layout=layout)
    wrong: tuple[tuple[str, tuple[int, ...], dict[str, Any], type[Exception]], ...] = (
        ("rank 1", (4,), {}, ShapeError),
        ("two channels", (2, 2, 2), {}, ShapeError),
        ("too opaque", (2, 2), {"options": {"image_options": {"alpha": 2}}}, ArgumentError),
        ("unknown option", (2, 2), {"options": {"canvas": 1}}, ArgumentError),
    )
    for name, shape, options, error in wrong:
        yield Case(name, (_image(corpus, shape),), options, expected=error)
