"""Patterns of cases that many kernels share: awkward shapes for one and for two operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.tables import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.corpus import Corpus
    from tensorplug_conformance.tables import Array

__all__ = ["binary", "unary"]


def unary(
    corpus: Corpus, draw: Callable[[tuple[int, ...]], Array] | None = None
) -> Iterator[Case]:
    """Yield cases for an elementwise kernel of one input; ``draw`` gives ordinary values."""
    make = draw or corpus.ordinary
    yield Case("edges", (corpus.edges(),))
    yield Case("rank 0", (make(()),))
    yield Case("empty", (make((2, 0, 3)),))
    yield Case("odd", (make((7,)),))
    yield Case("rank 6", (make((2, 1, 3, 1, 2, 3)),))
    yield Case("large", (make((LARGE,)),))
    yield Case("transposed", (make((5, 3, 2)),), layout="transposed")
    yield Case("sliced", (make((3, 5)),), layout="sliced")
    edges = corpus.edges()
    even = edges[: len(edges) // 2 * 2].reshape(2, -1)
    yield Case("transposed edges", (even,), layout="transposed")


def binary(
    corpus: Corpus,
    draw: Callable[[tuple[int, ...]], Array] | None = None,
    *,
    edges: Array | None = None,
) -> Iterator[Case]:
    """Yield cases for an elementwise kernel of two inputs; every pair of ``edges`` among them."""
    make = draw or corpus.ordinary
    special = corpus.edges() if edges is None else edges
    yield Case("edges", (special[:, None], special[None, :]))
    yield Case("rank 0", (make(()), make(())))
    yield Case("scalar left", (make(()), make((3,))))
    yield Case("scalar right", (make((2, 3)), make(())))
    yield Case("odd", (make((7,)), make((7,))))
    yield Case("outer", (make((5, 1)), make((1, 3))))
    yield Case("lower rank", (make((2, 3, 4)), make((3, 1))))
    yield Case("row", (make((5,)), make((4, 5))))
    yield Case("rank 6", (make((2, 1, 3, 1, 2, 1)), make((1, 3, 2, 2))))
    yield Case("empty", (make((0, 3)), make((1, 3))))
    yield Case("empty by broadcast", (make((2, 0, 3)), make((1,))))
    yield Case("large", (make((LARGE,)), make((LARGE,))))
    yield Case("large rows", (make((257, 259)), make((259,))))
    yield Case("transposed", (make((3, 4)), make((3, 4))), layout="transposed")
    yield Case("sliced", (make((3, 5)), make((3, 1))), layout="sliced")
