"""Cases for order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import ArgumentError, ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import sorting as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(specs.TOP_K, oracle=oracle.top_k)
def top_k(corpus: Corpus) -> Iterator[Case]:
    """Ties in the order of their indices, NaN first, k from nothing to everything."""
    yield Case("default", (corpus.ordinary((3, 4)),))
    yield Case("some", (corpus.ordinary((3, 7)),), {"k": 3})
    yield Case("everything", (corpus.ordinary((2, 5)),), {"k": 5})
    yield Case("nothing", (corpus.ordinary((2, 5)),), {"k": 0})
    yield Case("rank 1", (corpus.ordinary((7,)),), {"k": 2})
    yield Case("rank 6", (corpus.ordinary((1, 2, 1, 2, 1, 3)),), {"k": 2})
    yield Case("ties", (corpus.of([[1, 3, 3, 1], [2, 2, 2, 2]]),), {"k": 3})
    yield Case("many ties", (corpus.small((300,)),), {"k": 150})
    yield Case("edges", (corpus.edges(),), {"k": len(corpus.edges())})
    yield Case("empty rows", (corpus.ordinary((0, 3)),), {"k": 2})
    yield Case("empty axis", (corpus.ordinary((2, 0)),), {"k": 0})
    yield Case("large", (corpus.ordinary((LARGE,)),), {"k": 5})
    yield Case("many rows", (corpus.ordinary((259, 257)),), {"k": 2})
    for label, late in patterns.late(corpus):
        yield Case(label, (late,), {"k": 3})
    yield Case("transposed", (corpus.ordinary((3, 5)),), {"k": 2}, "transposed")
    yield Case("sliced", (corpus.ordinary((3, 5)),), {"k": 2}, "sliced")
    yield Case("too many", (corpus.ordinary((3,)),), {"k": 4}, expected=ShapeError)
    if corpus.floating:
        inf, nan = np.inf, np.nan
        rows = [[1, nan, 3], [nan, -inf, nan], [-inf, inf, 0], [0.0, -0.0, -1.0]]
        yield Case("specials", (corpus.of(rows),), {"k": 3})
        for k in (5, 40):  # fewer than there are NaN, and more
            yield Case(f"long rows, NaN, {k}", (_spotted(corpus, (3, 1999)),), {"k": k})


def _spotted(corpus: Corpus, shape: tuple[int, ...]) -> Array:
    """Return a few different numbers, negative zeros, and a NaN here and there."""
    x = corpus.small(shape) * corpus.of(-1)
    x[..., 3::97] = np.nan
    return x


def _sorting(corpus: Corpus) -> Iterator[Case]:
    for descending in (False, True):
        way = {"descending": descending}
        name = "descending" if descending else "ascending"
        yield Case(f"{name}, matrix", (corpus.ordinary((3, 4)),), way)
        yield Case(f"{name}, first axis", (corpus.ordinary((5, 3)),), {"axis": 0, **way})
        yield Case(f"{name}, middle axis", (corpus.ordinary((2, 5, 3)),), {"axis": -2, **way})
        yield Case(f"{name}, ties", (corpus.of([[1, 3, 3, 1, 3], [2, 2, 2, 2, 2]]),), way)
        yield Case(f"{name}, edges", (corpus.edges(),), way)
        yield Case(f"{name}, edges twice", (np.tile(corpus.edges(), 2),), way)
        yield Case(f"{name}, large", (corpus.ordinary((LARGE,)),), way)
        yield Case(f"{name}, rows", (corpus.ordinary((70, 67)),), way)
        yield Case(f"{name}, short rows", (corpus.ordinary((900, 3)),), way)
        if corpus.floating:
            zeros = np.where(np.arange(300) % 3, 0.0, -0.0)
            yield Case(f"{name}, zeros of both signs", (corpus.of(zeros),), way)
        yield Case(f"{name}, empty axis", (corpus.ordinary((2, 0)),), way)
        if corpus.floating:
            inf, nan = np.inf, np.nan
            rows = [[1, nan, 3], [nan, -inf, nan], [-inf, inf, 0], [0.0, -0.0, -1.0]]
            yield Case(f"{name}, specials", (corpus.of(rows),), way)
            yield Case(f"{name}, large, NaN", (_spotted(corpus, (LARGE,)),), way)
            zeros = np.where(np.arange(3000) % 3, 0.0, -0.0).reshape(2, 1500)
            zeros[:, ::7] = nan
            yield Case(f"{name}, many zeros", (corpus.of(zeros),), way)
        for label, late in patterns.late(corpus):
            yield Case(f"{name}, {label}", (late,), way)
    yield Case("rank 1", (corpus.ordinary((7,)),))
    yield Case("rank 6", (corpus.ordinary((1, 2, 1, 3, 1, 2)),), {"axis": 3})
    yield Case("one", (corpus.ordinary((3, 1)),))
    yield Case("empty rows", (corpus.ordinary((0, 3)),))
    yield Case("transposed", (corpus.ordinary((3, 5)),), {"axis": 0}, layout="transposed")
    yield Case("sliced", (corpus.ordinary((3, 5)),), layout="sliced")
    yield Case("rank 0", (corpus.ordinary(()),), expected=ShapeError)


@cases.of(specs.SORT, oracle=oracle.sort, signed_zero=True)
def sort(corpus: Corpus) -> Iterator[Case]:
    """Any axis, either way; zeros of both signs keep their order."""
    yield from _sorting(corpus)


@cases.of(specs.ARG_SORT, oracle=oracle.arg_sort)
def arg_sort(corpus: Corpus) -> Iterator[Case]:
    """Equals in the order of their indices, either way."""
    yield from _sorting(corpus)


@cases.of(specs.ARG_PARTITION, oracle=oracle.arg_partition)
def arg_partition(corpus: Corpus) -> Iterator[Case]:
    """One position and several, any axis, ties; the order of the others is free."""
    for name, shape, attributes in (
        ("first", (7,), {"kth": 0}),
        ("last", (7,), {"kth": -1}),
        ("middle", (3, 9), {"kth": 4}),
        ("several", (2, 30), {"kth": (3, -1, 17, 3)}),
        ("first axis", (9, 3), {"kth": 2, "axis": 0}),
        ("middle axis", (2, 5, 3), {"kth": [1, 3], "axis": -2}),
        ("one", (3, 1), {"kth": 0}),
        ("empty rows", (0, 3), {"kth": 1}),
        ("rank 6", (1, 2, 1, 3, 1, 2), {"kth": 1, "axis": 3}),
        ("rows", (70, 67), {"kth": (5, 60)}),
        ("large", (LARGE,), {"kth": (0, 1000, LARGE - 2)}),
    ):
        yield Case(name, (corpus.ordinary(shape),), attributes)
    for layout in ("transposed", "sliced"):
        yield Case(layout, (corpus.ordinary((3, 5)),), {"kth": 2}, layout=layout)
    yield Case("ties", (corpus.of([[1, 3, 3, 1, 3], [2, 2, 2, 2, 2]]),), {"kth": (1, 2)})
    yield Case("edges", (np.tile(corpus.edges(), 2),), {"kth": len(corpus.edges())})
    if corpus.floating:
        yield Case("NaN", (_spotted(corpus, (2, 1999)),), {"kth": (7, 1000, 1990)})
    yield Case("rank 0", (corpus.ordinary(()),), {"kth": 0}, expected=ShapeError)
    for name, kth in (("too far", 3), ("too far back", -4)):
        yield Case(name, (corpus.ordinary((2, 3)),), {"kth": kth}, expected=ShapeError)
    yield Case("empty axis", (corpus.ordinary((2, 0)),), {"kth": 0}, expected=ShapeError)
    yield Case("no position", (corpus.ordinary((2, 3)),), {"kth": ()}, expected=ArgumentError)


@cases.gradients(specs.TOP_K, "x")
def top_k_points(corpus: Corpus) -> Iterator[Case]:
    """The first output is differentiated; the indices are constants."""
    yield Case("row", (corpus.distinct((5,)),), {"k": 2})
    yield Case("matrix", (corpus.distinct((2, 4)),), {"k": 3})
    yield Case("rank 3", (corpus.distinct((2, 1, 3)),), {"k": 2})
    yield Case("in any order", (corpus.distinct((4,)),), {"k": 4, "sorted": False})
    yield Case("one", (corpus.distinct((3, 1)),))
    yield Case("nothing", (corpus.distinct((2, 3)),), {"k": 0})
    yield Case("empty rows", (corpus.distinct((0, 3)),), {"k": 2})
    yield Case("empty axis", (corpus.distinct((2, 0)),), {"k": 0})


@cases.gradients(specs.SORT, "x")
def sort_points(corpus: Corpus) -> Iterator[Case]:
    """Away from ties; among equals the gradient follows the index."""
    yield Case("row", (corpus.distinct((5,)),))
    yield Case("first axis", (corpus.distinct((4, 2)),), {"axis": 0})
    yield Case("third axis", (corpus.distinct((1, 2, 3)),), {"axis": 2, "stable": False})
    yield Case("last axis", (corpus.distinct((2, 3)),), {"axis": -1, "descending": True})
    yield Case("one", (corpus.distinct((3, 1)),))
    yield Case("empty axis", (corpus.distinct((2, 0)),))
    yield Case("empty rows", (corpus.distinct((0, 3)),))
    yield Case(
        "middle axis, descending", (corpus.distinct((2, 3, 2)),), {"axis": 1, "descending": True}
    )
