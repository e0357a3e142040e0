"""Cases for layer normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.nn import layer_normalization as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]

_SHAPES: tuple[tuple[str, Shape, dict[str, Any]], ...] = (
    ("rows", (3, 8), {}),
    ("rank 1", (7,), {}),
    ("rank 3", (2, 3, 5), {}),
    ("first axis", (5, 4), {"axis": 0}),
    ("negative axis", (2, 5, 3), {"axis": -2}),
    ("two axes", (2, 3, 4), {"axis": (1, 2)}),
    ("two axes apart", (3, 2, 4), {"axis": [0, -1]}),
    ("all axes", (3, 5), {"axis": None}),
    ("one feature", (4, 1), {}),
    ("rank 6", (1, 2, 1, 3, 1, 4), {"axis": (3, 5)}),
    ("epsilon", (3, 4), {"epsilon": 0.5}),
    ("no examples", (0, 3), {}),
    ("no features", (3, 0), {}),
    ("large", (301, 257), {}),
    ("many features", (3, 30000), {}),
)


def _layer(
    corpus: Corpus, name: str, shape: Shape, of: Shape | None, *, present: str = "so", **more: Any
) -> Case:
    scale = corpus.ordinary(of) if of is not None and "s" in present else None
    offset = corpus.ordinary(of) if of is not None and "o" in present else None
    return Case(name, (corpus.ordinary(shape), scale, offset), **more)


@cases.of(specs.LAYER_NORM, oracle=oracle.layer_norm)
def layer_norm(corpus: Corpus) -> Iterator[Case]:
    """Any axes; scale and offset per feature, per example, in one number, or absent."""
    for name, shape, attributes in _SHAPES:
        yield _layer(corpus, name, shape, None, attributes=attributes)
    yield _layer(corpus, "per feature", (5, 6), (6,))
    yield _layer(corpus, "scale", (5, 6), (6,), present="s")
    yield _layer(corpus, "offset", (5, 6), (6,), present="o")
    yield _layer(corpus, "one number", (5, 6), ())
    yield _layer(corpus, "one element", (5, 6), (1, 1))
    yield _layer(corpus, "per example", (5, 6), (5, 1))
    yield _layer(corpus, "each element", (5, 6), (5, 6))
    yield _layer(corpus, "per feature of two", (4, 2, 3), (2, 3), attributes={"axis": (1, 2)})
    yield _layer(corpus, "last of two", (4, 2, 3), (3,), attributes={"axis": (1, 2)})
    yield _layer(corpus, "channels first", (2, 3, 4), (3, 1), attributes={"axis": 1})
    yield _layer(corpus, "large per feature", (301, 257), (257,))
    for layout in ("transposed", "sliced"):
        yield _layer(corpus, layout, (4, 3), (3,), layout=layout)
    yield Case("far from 0", (corpus.of([[256.0, 257, 255, 256]]), None, None))
    # E[x**2] - E[x]**2 cancels; of the whole numbers above it would be exact.
    uneven = corpus.ordinary((3, 37), 0.0, 8.0) + corpus.of([[256], [1000], [-2000]])
    yield Case("far from 0, uneven", (uneven, None, None))
    yield Case("not finite", (corpus.of([[1, np.nan, 2], [1, 2, 4]]), None, None))


@cases.of(specs.LAYER_NORM_GRAD, oracle=oracle.layer_norm_grad)
def layer_norm_grad(corpus: Corpus) -> Iterator[Case]:
    """The same axes."""
    for name, shape, attributes in _SHAPES:
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(shape)), attributes)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)), corpus.ordinary((3, 5))), layout=layout)


_POINTS: tuple[tuple[str, Shape, dict[str, Any]], ...] = (
    ("rows", (2, 3), {}),
    ("negative axis", (3, 2), {"axis": -2}),
    ("two axes", (2, 2, 2), {"axis": (0, -1)}),
    ("third axis", (1, 2, 3), {"axis": 2}),
    ("all axes", (2, 2), {"axis": None, "epsilon": 0.25}),
    ("rank 1", (3,), {}),
    ("one feature", (3, 1), {"epsilon": 0.25}),  # float16 cannot hold the third power of 1e-3
    ("no examples", (0, 3), {}),
)


@cases.gradients(specs.LAYER_NORM, "x", "scale", "offset", cancelled=1)
def layer_norm_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, attributes in _POINTS:
        yield _layer(corpus, name, shape, shape, attributes=attributes)
    yield _layer(corpus, "per feature", (3, 4), (4,))
    yield _layer(corpus, "per example", (2, 3), (2, 1))
    yield _layer(corpus, "numbers", (2, 3), ())
    for present, what in (("o", "no scale"), ("s", "no offset"), ("", "neither")):
        yield _layer(corpus, what, (2, 3), (3,), present=present)


@cases.gradients(specs.LAYER_NORM_GRAD, "dy", "x", cancelled=1)  # means of products
def layer_norm_grad_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, attributes in _POINTS:
        yield Case(name, (corpus.ordinary(shape), corpus.ordinary(shape)), attributes)
