"""Cases for sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import sets as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(specs.UNIQUE, oracle=oracle.unique)
def unique(corpus: Corpus) -> Iterator[Case]:
    """The order of first occurrence, along every axis; NaN and zeros of both signs."""
    text = corpus.dtype.kind == "string"
    make = corpus.ordinary if text else corpus.small
    edges = corpus.edges()
    yield Case("edges", (np.concatenate([edges[::-1], edges]),))
    yield Case("some", (make((17,)),))
    yield Case("one", (make((1,)),))
    yield Case("equal", (np.repeat(make((1,)), 9),))
    yield Case("distinct", (edges,), {"axis": -1})
    yield Case("empty", (make((0,)),))
    yield Case("rows", (make((9, 1)),))
    yield Case("default axis", (make((2, 3))[[0, 1, 0, 0, 1]],))
    yield Case("axis as None", (make((2, 3))[[0, 1, 0, 0, 1]],), {"axis": None})
    yield Case("last axis", (make((3, 2))[:, [0, 1, 0, 1, 1]],), {"axis": -1})
    yield Case("middle axis", (make((2, 2, 3))[:, [0, 1, 1, 0]],), {"axis": 1})
    yield Case("rank 6", (make((1, 2, 1, 4, 1, 1)),), {"axis": 3})
    yield Case("empty slices", (make((3, 0)),))
    yield Case("no slices", (make((2, 0)),), {"axis": 1})
    yield Case("large", (make((LARGE,)),))
    if corpus.dtype in (dt.int64, dt.uint64):
        neighbours = [(1 << 53) + 1, 1 << 53, (1 << 53) + 1, (1 << 53) + 2]
        yield Case("neighbours beyond 2**53", (np.array(neighbours, corpus.dtype.numpy),))
    if corpus.dtype in (dt.float32, dt.int32):
        yield Case("many distinct", (corpus.distinct((LARGE,)),))
    yield Case("rank 0", (make(()),), expected=ShapeError)
    if not text:
        yield Case("transposed", (make((2, 5)),), {"axis": 1}, layout="transposed")
        yield Case("sliced", (make((4, 5)),), {"axis": 1}, layout="sliced")
    if corpus.floating:
        nan = np.nan
        rows = [[nan, 1], [-0.0, nan], [nan, 1], [0.0, nan], [1, nan]]
        yield Case("specials", (corpus.of(rows),))
        many = make((LARGE,))
        many[3::97] = nan
        yield Case("large, NaN", (many,))


@cases.gradients(specs.UNIQUE, "x")
def unique_points(corpus: Corpus) -> Iterator[Case]:
    """Distinct elements pass the gradient on; of equal ones the first gets it."""
    yield Case("distinct", (corpus.distinct((5,)),))
    yield Case("distinct columns", (corpus.distinct((2, 3)),), {"axis": 1})
    yield Case("distinct, last axis", (corpus.distinct((2, 1, 3)),), {"axis": -1})
    yield Case("distinct, third axis", (corpus.distinct((1, 2, 3)),), {"axis": 2})
    yield Case("empty", (corpus.distinct((0,)),))
    yield Case("empty slices", (corpus.distinct((1, 0)),))
    yield Case("no slices", (corpus.distinct((2, 0)),), {"axis": 1})
    twice = corpus.of([2.0, 1.0, 2.0, 3.0, 1.0])
    yield Case("twice", (twice,), expected=(corpus.of([1, 1, 0, 1, 0]),))
