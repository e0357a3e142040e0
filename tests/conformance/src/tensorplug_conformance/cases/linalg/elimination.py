"""Cases for Gaussian elimination with exchanges of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle.linalg import elimination as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]
_SHAPES: tuple[Shape, ...] = (
    (1, 1),
    (2, 2),
    (3, 3),
    (4, 2),
    (2, 4),
    (1, 5),
    (5, 1),
    (11, 7),
    (17, 17),
    (70, 70),  # more than a block
    (66, 130),
    (130, 66),
    (2, 3, 4),
    (2, 1, 1, 2, 3, 2),
    (7283, 3, 3),  # more than 2**16 elements
    (0, 0),
    (0, 3),
    (3, 0),
    (0, 3, 2),
    (2, 0, 0),
)


def _named(shape: Shape) -> str:
    return "x".join(map(str, shape))


# Algorithms differ for matrices that are not finite.
@cases.of(specs.LU, oracle=oracle.lu, ordinary=("input",))
def eliminate(corpus: Corpus) -> Iterator[Case]:
    """Tall, wide, square; rows to exchange; singular matrices, and pivots of equal size."""
    for shape in _SHAPES:
        yield Case(_named(shape), (corpus.ordinary(shape, -1.0, 1.0),))
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 3), -1.0, 1.0),), layout=layout)
    yield Case("permutation", (corpus.of([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),))
    yield Case("zeros", (corpus.of(np.zeros((3, 2))),))
    yield Case("dependent", (corpus.of([[1, 2, 3], [2, 4, 6], [1, 1, 1]]),))
    yield Case("equal pivots", (corpus.of([[1, 2], [-1, 1]]),))
    for shape in ((3,), ()):
        wrong = corpus.ordinary(shape)
        yield Case(f"wrong: {_named(shape)}", (wrong,), expected=ShapeError)


def _clear(corpus: Corpus, shape: Shape) -> Array:
    """Return matrices in which no small change chooses other pivots, and rows are exchanged."""
    if not np.prod(shape):
        return corpus.ordinary(shape)
    steps = 4.0 * np.eye(shape[-2], shape[-1])
    return np.roll(corpus.of(corpus.ordinary(shape, -0.5, 0.5) + steps), 1, axis=-2)


@cases.gradients(specs.LU, "input")
def eliminated(corpus: Corpus) -> Iterator[Case]:
    """Square, tall and wide; none."""
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3), (1, 1), (0, 0), (0, 3, 2)):
        yield Case(_named(shape), (_clear(corpus, shape),))
