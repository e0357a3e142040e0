"""Cases for reading and writing at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.ops import indexing as ops
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import indexing as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# (case, shape of x, shape of indices, attributes)
_GATHER: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    ("rows", (4, 3), (5,), {}),
    ("columns", (3, 4), (2,), {"axis": 1}),
    ("last axis", (2, 3, 4), (3,), {"axis": -1}),
    ("last of equal axes", (3, 3, 3), (3,), {"axis": 2}),
    ("batched, equal axes", (3, 3, 3), (3, 3), {"axis": 2, "batch_dims": 1}),
    ("table of indices", (5, 2), (2, 3), {"axis": 0}),
    ("scalar index", (4, 3), (), {"axis": 0}),
    ("middle", (2, 4, 3), (2, 2), {"axis": 1}),
    ("batched", (3, 4), (3, 2), {"axis": 1, "batch_dims": 1}),
    ("batched, later axis", (2, 3, 4), (2, 5), {"axis": 2, "batch_dims": 1}),
    ("two batch axes", (2, 3, 4), (2, 3, 2), {"axis": 2, "batch_dims": 2}),
    ("no indices", (4, 3), (0,), {}),
    ("empty rows", (4, 0), (3,), {}),
    ("rank 6", (1, 2, 3, 2, 1, 2), (2,), {"axis": 2}),
    ("large", (37,), (LARGE,), {}),
    ("from large", (LARGE,), (9,), {}),
)


@cases.of(ops.GATHER_V2, oracle=oracle.gather, signed_zero=True)
def gather(corpus: Corpus) -> Iterator[Case]:
    """Repeated indices, the first and the last, negative ones, every index dtype."""
    for name, shape, index_shape, attributes in _GATHER:
        below = shape[attributes.get("axis", 0)]
        indices = corpus.indices(index_shape, below)
        yield Case(name, (corpus.ordinary(shape), indices), attributes)
    edges = corpus.edges()
    backwards = np.arange(len(edges), dtype=np.int32)[::-1].copy()
    yield Case("edges", (edges, backwards))
    yield Case("from the end", (edges, np.array([-1, 0, -len(edges)], dtype=np.int32)))
    for dtype in sorted(each.name for each in dt.INTEGER - {dt.int32}):
        yield Case(f"by {dtype}", (corpus.ordinary((5, 2)), corpus.indices((3,), 5, dtype)))
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((4, 5)), corpus.indices((2, 3), 5))
        yield Case(layout, inputs, {"axis": 1}, layout=layout)


# (case, shape of the result, number of updates or leading shape, depth of the indices)
_SCATTER: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int], ...] = (
    ("elements", (5,), (4,), 1),
    ("collisions", (2,), (9,), 1),
    ("rows", (4, 3), (3,), 1),
    ("cells", (3, 4), (6,), 2),
    ("leading shape", (4, 2), (2, 3), 1),
    ("rank 3", (2, 3, 2), (5,), 2),
    ("no updates", (3, 2), (0,), 1),
    ("whole", (2, 2), (3,), 0),
    ("rank 6", (2, 1, 2, 1, 2, 2), (4,), 5),
    ("large result", (LARGE,), (7,), 1),
    ("many collisions", (3,), (1000,), 1),
)


@cases.of(ops.SCATTER_ND, oracle=oracle.scatter_nd)
def scatter_nd(corpus: Corpus) -> Iterator[Case]:
    """Duplicates add up; places without an update are zero."""
    for name, shape, lead, depth in _SCATTER:
        columns = [corpus.indices(lead, n) for n in shape[:depth]]
        empty = np.zeros((*lead, 0), dtype=np.int32)
        indices = np.stack(columns, axis=-1) if columns else empty
        updates = corpus.ordinary((*lead, *shape[depth:]))
        yield Case(name, (indices, updates), {"shape": shape})
    same = np.zeros((3, 1), dtype=np.int32)
    yield Case("one place", (same, corpus.of([1, 2, 3])), {"shape": (2,)})
    for dtype in sorted(each.name for each in dt.INTEGER - {dt.int32}):
        inputs = (corpus.indices((4, 1), 3, dtype), corpus.ordinary((4,)))
        yield Case(f"by {dtype}", inputs, {"shape": (3,)})
    for layout in ("transposed", "sliced"):
        inputs = (corpus.indices((3, 1), 4), corpus.ordinary((3, 2)))
        yield Case(layout, inputs, {"shape": (4, 2)}, layout=layout)


@cases.of(ops.ONE_HOT, oracle=oracle.one_hot)
def one_hot(corpus: Corpus) -> Iterator[Case]:
    """Indices outside [0, depth) give rows of off_value."""
    classes = corpus.of([0, 2, 1, 2])
    yield Case("default", (classes,), {"depth": 3})
    yield Case("values", (classes,), {"depth": 3, "on_value": 5, "off_value": -1})
    yield Case("too deep", (corpus.of([0, 3, 7]),), {"depth": 3})
    yield Case("depth 0", (classes,), {"depth": 0})
    yield Case("rank 0", (corpus.of(1),), {"depth": 2})
    yield Case("rank 3", (corpus.of([[[0, 1]], [[2, 0]]]),), {"depth": 3})
    yield Case("empty", (corpus.of([]).reshape(0, 2),), {"depth": 3})
    yield Case("edges", (corpus.edges(),), {"depth": 4})
    yield Case("large", (corpus.indices((LARGE // 8,), 9, corpus.dtype.name),), {"depth": 9})
    for dtype in ("int32", "bool", "float64", "float16", "uint8"):
        yield Case(f"as {dtype}", (classes,), {"depth": 3, "dtype": dtype})
    if corpus.dtype in dt.SIGNED:
        yield Case("negative", (corpus.of([-1, 0, -3]),), {"depth": 3})
    yield Case("transposed", (corpus.of([[0, 1, 2], [2, 1, 0]]),), {"depth": 3}, "transposed")
    yield Case("sliced", (corpus.of([[0, 1, 2], [2, 1, 0]]),), {"depth": 3}, "sliced")


@cases.gradients(ops.GATHER_V2, "x")
def gather_points(corpus: Corpus) -> Iterator[Case]:
    repeated = np.array([0, 2, 0], dtype=np.int32)
    yield Case("rows", (corpus.ordinary((3, 2)), repeated), {"axis": 0})
    yield Case("columns", (corpus.ordinary((2, 3)), repeated), {"axis": 1})
    batched = np.array([[0, 0], [2, 1]], dtype=np.int32)
    yield Case("batched", (corpus.ordinary((2, 3)), batched), {"axis": 1, "batch_dims": 1})
    last = np.array([-1, 0, -1], dtype=np.int32)
    yield Case("from the end", (corpus.ordinary((3,)), last), {"axis": 0})


@cases.gradients(ops.SCATTER_ND, "updates")
def scatter_points(corpus: Corpus) -> Iterator[Case]:
    places = np.array([[1], [0], [1]], dtype=np.int32)
    yield Case("elements", (places, corpus.ordinary((3,))), {"shape": (4,)})
    yield Case("rows", (places, corpus.ordinary((3, 2))), {"shape": (3, 2)})
