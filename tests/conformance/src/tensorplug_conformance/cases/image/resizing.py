"""Cases for resizing images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.image import resizing as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# (shape of the images, size): larger, smaller, one of each, whole factors, thirds, single pixels
_SIZES = (
    ((1, 2, 2, 1), (3, 3)),
    ((2, 3, 4, 2), (7, 9)),
    ((1, 9, 7, 3), (4, 3)),
    ((1, 5, 3, 1), (3, 8)),
    ((1, 4, 6, 1), (8, 3)),
    ((2, 3, 3, 1), (3, 3)),
    ((1, 4, 5, 2), (4, 10)),
    ((1, 1, 1, 2), (3, 4)),
    ((1, 5, 4, 1), (1, 1)),
    ((1, 2, 3, 1), (49, 1)),
)
_GRIDS: tuple[dict[str, Any], ...] = (
    {},
    {"align_corners": True},
    {"half_pixel_centers": True},
)


def _sizes() -> Iterator[tuple[str, tuple[int, ...], dict[str, Any]]]:
    for grid in _GRIDS:
        for shape, size in _SIZES:
            old = "x".join(map(str, shape[1:3]))
            name = " ".join((old, "to", "x".join(map(str, size)), *grid))
            yield name, shape, {"size": size, **grid}


def _resized(corpus: Corpus) -> Iterator[Case]:
    for name, shape, options in _sizes():
        yield Case(name, (corpus.ordinary(shape),), options)
    half = {"half_pixel_centers": True}
    yield Case("large", (corpus.ordinary((1, 40, 33, 5)),), {"size": (119, 112), **half})
    yield Case("no images", (corpus.ordinary((0, 3, 2, 1)),), {"size": (5, 4)})
    yield Case("no channels", (corpus.ordinary((1, 3, 2, 0)),), {"size": (5, 4)})
    yield Case("to nothing", (corpus.ordinary((1, 3, 2, 1)),), {"size": (0, 4)})
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((2, 4, 3, 2)),), {"size": (3, 5)}, layout=layout)
    wrong: tuple[tuple[str, tuple[int, ...], dict[str, Any], type[Exception]], ...] = (
        ("rank 3", (3, 3, 1), {"size": (2, 2)}, ShapeError),
        ("no pixels", (1, 0, 3, 1), {"size": (2, 2)}, ShapeError),
        ("one size", (1, 3, 3, 1), {"size": (2,)}, ArgumentError),
        ("both grids", (1, 3, 3, 1), {"size": (2, 2), **_GRIDS[1], **_GRIDS[2]}, ArgumentError),
    )
    for name, shape, options, error in wrong:
        yield Case(name, (corpus.ordinary(shape),), options, expected=error)


@cases.of(specs.RESIZE_BILINEAR, oracle=oracle.resize_bilinear)
def resize_bilinear(corpus: Corpus) -> Iterator[Case]:
    """A NaN appears where it has weight, and an axis that keeps its size keeps its pixels."""
    yield from _resized(corpus)
    x = corpus.ordinary((1, 4, 4, 1))
    x[0, 1, 2, 0] = np.nan
    for grid in _GRIDS:
        yield Case(" ".join(("a NaN", *grid)), (x,), {"size": (7, 4), **grid})


@cases.of(specs.RESIZE_NEAREST_NEIGHBOR, oracle=oracle.resize_nearest_neighbor)
def resize_nearest_neighbor(corpus: Corpus) -> Iterator[Case]:
    """Every value is a value of the input, whatever it is."""
    yield from _resized(corpus)
    edges = corpus.edges()
    yield Case("edges", (edges.reshape(1, 1, -1, 1),), {"size": (2, 2 * edges.size - 1)})
    if corpus.dtype is dt.float32:
        for grid in _GRIDS:
            long = corpus.ordinary((1, 3000, 1, 1))
            yield Case(" ".join(("long", *grid)), (long,), {"size": (9999, 1), **grid})


def _pulled(corpus: Corpus) -> Iterator[Case]:
    for name, shape, options in _sizes():
        dy = corpus.ordinary((shape[0], *options["size"], shape[3]))
        yield Case(name, (corpus.ordinary(shape), dy), options)
    small, dy = corpus.ordinary((1, 3, 2, 1)), corpus.ordinary((1, 40, 50, 1))
    yield Case("size from dy", (small, dy), {"half_pixel_centers": True})
    image, dy = corpus.ordinary((1, 20, 17, 5)), corpus.ordinary((1, 119, 112, 5))
    yield Case("large", (image, dy), {"align_corners": True})
    yield Case("of nothing", (small, corpus.ordinary((1, 0, 4, 1))))
    special = corpus.ordinary((1, 6, 4, 1))
    special[0, 2, 1, 0], special[0, 4, 3, 0] = np.nan, np.inf
    yield Case("specials", (small, special), {"half_pixel_centers": True})
    wrong = corpus.ordinary((1, 40, 50, 2))
    yield Case("other channels", (small, wrong), expected=ShapeError)
    yield Case("other size", (small, dy), {"size": (2, 2)}, expected=ShapeError)


cases.of(specs.RESIZE_BILINEAR_GRAD, oracle=oracle.resize_bilinear_grad)(_pulled)
cases.of(specs.RESIZE_NEAREST_NEIGHBOR_GRAD, oracle=oracle.resize_nearest_neighbor_grad)(_pulled)


# Gradients.


def _points(*, with_dy: bool) -> Callable[[Corpus], Iterator[Case]]:
    def points(corpus: Corpus) -> Iterator[Case]:
        for grid in _GRIDS:
            for shape, size in (((1, 3, 2, 1), (4, 5)), ((1, 4, 3, 1), (2, 2))):
                name = " ".join(("x".join(map(str, size)), *grid))
                x = corpus.ordinary(shape)
                dy = corpus.ordinary((1, *size, 1))
                yield Case(name, (x, dy) if with_dy else (x,), {"size": size, **grid})
        x, dy = corpus.ordinary((0, 3, 2, 1)), corpus.ordinary((0, 2, 2, 1))
        yield Case("no images", (x, dy) if with_dy else (x,), {"size": (2, 2)})

    return points


cases.gradients(specs.RESIZE_BILINEAR, "images")(_points(with_dy=False))
cases.gradients(specs.RESIZE_BILINEAR_GRAD, "dy")(_points(with_dy=True))
cases.gradients(specs.RESIZE_NEAREST_NEIGHBOR, "images")(_points(with_dy=False))
cases.gradients(specs.RESIZE_NEAREST_NEIGHBOR_GRAD, "dy")(_points(with_dy=True))
