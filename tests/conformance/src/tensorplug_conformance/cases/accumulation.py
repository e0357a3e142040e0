"""Cases for products added to something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import accumulation as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

Shape = tuple[int, ...]

_SHAPES: tuple[tuple[str, tuple[Shape, Shape, Shape]], ...] = (
    ("one shape", ((2, 3), (2, 3), (2, 3))),
    ("rank 0", ((), (), ())),
    ("a number times", ((4, 5), (), (4, 5))),
    ("plus a number", ((4, 5), (4, 5), ())),
    ("only the third is large", ((), (), (3, 2))),
    ("rows and columns", ((3, 1), (1, 4), (4,))),
    ("the third widens", ((4,), (4,), (3, 4))),
    ("size 1", ((1, 3), (2, 1), (1, 1, 1))),
    ("rank 6", ((1, 2, 1, 3, 1, 2), (2, 1, 3, 1, 1), (1,))),
    ("rank 6 at the end", ((3, 1), (2,), (1, 2, 1, 1, 3, 2))),
    ("empty", ((0, 3), (3,), (1, 3))),
)


@cases.of(specs.MULTIPLY_ADD, oracle=oracle.multiply_add)
def multiply_add(corpus: Corpus) -> Iterator[Case]:
    """All ways to broadcast, and many elements."""
    for name, shapes in _SHAPES:
        yield Case(name, tuple(corpus.ordinary(shape) for shape in shapes))
    edges = corpus.edges()
    yield Case("edges", (edges[:, None], corpus.of([0, 1, 2]), corpus.of(1)))
    yield Case("plus edges", (corpus.of([[0], [1]]), corpus.of(1), edges))
    large = (LARGE * 8 + 3,)
    yield Case("large", (corpus.ordinary(large), corpus.ordinary(()), corpus.ordinary(large)))
    for layout in ("transposed", "sliced"):
        three = tuple(corpus.ordinary((3, 5)) for _ in range(3))
        yield Case(layout, three, layout=layout)


@cases.gradients(specs.MULTIPLY_ADD, "x", "y", "z")
def multiply_add_points(corpus: Corpus) -> Iterator[Case]:
    for name, shapes in _SHAPES:
        yield Case(name, tuple(corpus.ordinary(shape) for shape in shapes))
