"""Cases for searching in sorted sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import searching as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _searching(corpus: Corpus, attributes: dict[str, Any]) -> Iterator[Case]:
    def rows(*shape: int) -> Any:
        return np.sort(corpus.small(shape, 9), axis=-1)

    edges = np.sort(corpus.edges())
    yield Case("edges", (edges, corpus.edges()), attributes)
    yield Case("rank 1", (rows(7), corpus.small((5,), 9)), attributes)
    yield Case("rank 0", (rows(8), corpus.small((), 9)), attributes)
    yield Case("one sequence", (rows(9), corpus.small((2, 3, 2), 9)), attributes)
    yield Case("rank 5", (rows(9), corpus.small((1, 2, 1, 2, 3), 9)), attributes)
    yield Case("equals", (corpus.of([1] * 6), corpus.of([0, 1, 1])), attributes)
    yield Case("one element", (rows(1), corpus.small((6,), 9)), attributes)
    yield Case("batch", (rows(5, 6), corpus.small((5, 4), 9)), attributes)
    yield Case("batch of two axes", (rows(2, 3, 7), corpus.small((2, 3, 1), 9)), attributes)
    yield Case("many values", (rows(6, 3), corpus.small((6, 70), 9)), attributes)
    yield Case("many rows", (rows(300, 5), corpus.small((300, 2), 9)), attributes)
    yield Case("empty sequence", (rows(0), corpus.small((3,))), attributes)
    yield Case("empty sequences", (rows(7, 0), corpus.small((7, 3))), attributes)
    yield Case("no values", (rows(3), corpus.small((0,))), attributes)
    yield Case("no rows", (rows(0, 3), corpus.small((0, 2))), attributes)
    yield Case("transposed", (rows(6, 6), corpus.small((6, 3), 9)), attributes, "transposed")
    yield Case("sliced", (rows(6, 5), corpus.small((6, 3), 9)), attributes, "sliced")
    long = np.sort(corpus.ordinary((LARGE,)))
    # The expected results are known: the first index of each value, or the one after the last.
    right = bool(attributes) and attributes["side"] == "right"
    known = np.searchsorted(long, long[::4099], side="right" if right else "left")
    yield Case("large", (long, long[::4099]), attributes, expected=(known.astype(np.int32),))
    yield Case(
        "rank 0 sequence", (corpus.small(()), corpus.small((2,))), attributes, expected=ShapeError
    )
    yield Case(
        "other batches", (rows(2, 3), corpus.small((3, 2))), attributes, expected=ShapeError
    )
    if corpus.floating:
        nan, inf = np.nan, np.inf
        ordered = corpus.of([[-inf, -1, -0.0, 0.0, nan, nan]] * 6)
        sought = corpus.of([[nan, inf], [0.0, -0.0], [-inf, 1], [nan, nan], [-1, 0], [2, -2]])
        yield Case("specials", (ordered, sought), attributes)


@cases.of(specs.SEARCH_SORTED, oracle=oracle.search_sorted, ordinary=("sorted_sequence",))
def search_sorted(corpus: Corpus) -> Iterator[Case]:
    """Both sides, one sequence and batches."""
    yield from _searching(corpus, {})
    for case in _searching(corpus, {"side": "right"}):
        yield Case(f"right, {case.id}", case.inputs, case.attributes, case.layout, case.expected)
    pair = (corpus.small((2,)), corpus.small((2,)))
    yield Case("no such side", pair, {"side": "up"}, expected=ArgumentError)


@cases.of(specs.LOWER_BOUND, oracle=oracle.lower_bound, ordinary=("sorted_sequence",))
def lower_bound(corpus: Corpus) -> Iterator[Case]:
    """The same from the left, without an attribute."""
    yield from _searching(corpus, {})


@cases.of(specs.UPPER_BOUND, oracle=oracle.upper_bound, ordinary=("sorted_sequence",))
def upper_bound(corpus: Corpus) -> Iterator[Case]:
    """The same from the right, without an attribute."""
    for case in _searching(corpus, {"side": "right"}):
        yield Case(case.id, case.inputs, {}, case.layout, case.expected)
