"""Cases for pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.ops import pooling as ops
from tensorplug_conformance.oracle import pooling as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

_PAIRS = ((0, 0), (1, 0), (0, 1), (0, 0))
# (case, shape of x, attributes)
WINDOWS: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("2x2", (2, 4, 6, 3), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("left over", (1, 5, 5, 2), {"filter_size": 2, "strides": 2, "pad": "valid"}),
    ("overlapping", (1, 5, 6, 1), {"filter_size": 3, "strides": 1, "pad": "valid"}),
    ("same", (1, 5, 4, 2), {"filter_size": 3, "strides": 2, "pad": "same"}),
    ("uneven", (1, 6, 7, 1), {"filter_size": (2, 3), "strides": (3, 2), "pad": "same"}),
    ("gaps", (1, 7, 7, 1), {"filter_size": 1, "strides": 3, "pad": "valid"}),
    ("numeric pad", (1, 4, 4, 1), {"filter_size": 3, "strides": 2, "pad": 1}),
    ("explicit pad", (1, 4, 4, 2), {"filter_size": 2, "strides": 1, "pad": _PAIRS}),
    ("whole", (2, 3, 4, 2), {"filter_size": (3, 4), "strides": 1, "pad": "valid"}),
    ("no batch", (0, 4, 4, 1), {"filter_size": 2, "strides": 2, "pad": "valid"}),
)
_LARGE = ("large", (1, 128, 128, 5), {"filter_size": 2, "strides": 1, "pad": "same"})


@cases.of(ops.MAX_POOL, oracle=oracle.max_pool)
def max_pool(corpus: Corpus) -> Iterator[Case]:
    """Padding never wins, not even over negative numbers; NaN always does."""
    for name, shape, options in (*WINDOWS, _LARGE):
        yield Case(name, (corpus.ordinary(shape),), options)
    lowest = np.min(corpus.edges()[~_missing(corpus)])
    same = {"filter_size": 3, "strides": 1, "pad": "same"}
    yield Case("all lowest", (np.full((1, 3, 3, 1), lowest),), same)
    for layout in ("transposed", "sliced"):
        options = {"filter_size": 2, "strides": 2, "pad": "valid"}
        yield Case(layout, (corpus.ordinary((2, 4, 4, 3)),), options, layout=layout)
    if corpus.floating:
        inf, nan = np.inf, np.nan
        x = corpus.of([[1, nan, 3, 4], [5, 6, -inf, -inf], [inf, 1, -1, -2], [0, 2, -3, nan]])
        yield Case("specials", (x.reshape(1, 4, 4, 1),), {**same, "filter_size": 2})


def _missing(corpus: Corpus) -> Any:
    edges = corpus.edges()
    return np.isnan(edges) if corpus.floating else np.zeros(edges.shape, dtype=bool)


@cases.of(ops.MAX_POOL_GRAD, oracle=oracle.max_pool_grad)
def max_pool_grad(corpus: Corpus) -> Iterator[Case]:
    """Ties go to the first in row-major order; overlapping windows add up."""
    for name, shape, options in WINDOWS:
        x = corpus.distinct(shape)
        yield _pulled(corpus, name, x, options)
    tied = corpus.of(np.ones((1, 4, 4, 2)))
    yield _pulled(corpus, "all tied", tied, {"filter_size": 2, "strides": 2, "pad": "valid"})
    yield _pulled(corpus, "tied same", tied, {"filter_size": 3, "strides": 2, "pad": "same"})
    low = corpus.of(-np.ones((1, 3, 3, 1)))
    yield _pulled(corpus, "all negative", low, {"filter_size": 3, "strides": 1, "pad": "same"})


def _pulled(corpus: Corpus, name: str, x: Any, options: dict[str, Any]) -> Case:
    output = oracle.max_pool(x, **options)
    return Case(name, (corpus.ordinary(output.shape), x, output), options)


@cases.gradients(ops.MAX_POOL, "x")
def max_pool_points(corpus: Corpus) -> Iterator[Case]:
    for name, options in (
        ("2x2", {"filter_size": 2, "strides": 2, "pad": "valid"}),
        ("overlapping", {"filter_size": 2, "strides": 1, "pad": "same"}),
    ):
        yield Case(name, (corpus.distinct((1, 4, 4, 1)),), options)


@cases.gradients(ops.MAX_POOL_GRAD, "dy")
def max_pool_grad_points(corpus: Corpus) -> Iterator[Case]:
    x = corpus.distinct((1, 4, 4, 1))
    yield _pulled(corpus, "2x2", x, {"filter_size": 2, "strides": 2, "pad": "valid"})
