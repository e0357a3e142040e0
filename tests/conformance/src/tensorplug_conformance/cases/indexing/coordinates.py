"""Cases for the coordinates of nonzero elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle.indexing import coordinates as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (0,),
    (3, 0, 2),
    (7,),
    (3, 5),
    (2, 3, 4),
    (1, 2, 1, 3, 2, 1),
)


@cases.of(specs.WHERE, oracle=oracle.where)
def where(corpus: Corpus) -> Iterator[Case]:
    """Zeros of both signs, NaN, every rank; none and all."""
    for shape in _SHAPES:
        yield Case(f"shape {list(shape)}", (corpus.small(shape, most=1),))
    yield Case("edges", (corpus.edges(),))
    for name, value in (("none", 0), ("all", 1)):
        yield Case(name, (np.full((2, 3), value).astype(corpus.dtype.numpy),))
        yield Case(f"{name}, rank 0", (np.array(value).astype(corpus.dtype.numpy),))
    yield Case("large", (corpus.small((LARGE,), most=1),))
    yield Case("all of many", (np.ones(LARGE + 9).astype(corpus.dtype.numpy),))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.small((4, 5), most=1),), layout=layout)
