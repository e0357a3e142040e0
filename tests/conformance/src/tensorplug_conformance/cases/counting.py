"""Cases for sums by segment and counts of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import counting as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

# (case, shape of the ids, rest of the shape of x, number of segments)
_SEGMENTS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int], ...] = (
    ("elements", (5,), (), 3),
    ("rows", (5,), (2,), 3),
    ("wide rows", (60,), (7,), 5),
    ("blocks", (3,), (2, 2), 2),
    ("table of ids", (2, 3), (2,), 4),
    ("one id", (), (2,), 3),
    ("one element", (), (), 3),
    ("nothing", (0,), (2,), 3),
    ("empty rows", (3,), (0,), 2),
    ("one segment", (9,), (), 1),
    ("no segments", (3,), (2,), 0),
    ("rank 6", (2, 1, 2), (1, 2, 1), 2),
    ("large", (LARGE,), (), 7),
    ("many segments", (3,), (2,), LARGE // 2),
)


@cases.of(specs.UNSORTED_SEGMENT_SUM, oracle=oracle.segment_sum)
def unsorted_segment_sum(corpus: Corpus) -> Iterator[Case]:
    """Ids in any order, out of range, of every dtype."""
    for name, ids, rest, count in _SEGMENTS:
        inputs = (corpus.ordinary((*ids, *rest)), corpus.indices(ids, max(count, 1)))
        yield Case(name, inputs, {"num_segments": count})
    edges = corpus.edges()
    numbers = np.arange(len(edges), dtype=np.int32)
    yield Case("edges apart", (edges, numbers), {"num_segments": len(edges)})
    outside = np.array([0, -1, 3, 1, -7, 100, 0], dtype=np.int32)
    yield Case("out of range", (corpus.ordinary((7,)), outside), {"num_segments": 3})
    yield Case("rows out of range", (corpus.ordinary((7, 6)), outside), {"num_segments": 3})
    apart = np.array([0, 0, 1, 2, 299], np.int32)
    yield Case("many empty ones", (corpus.ordinary((5,)), apart), {"num_segments": 300})
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        extreme = np.array([0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min, 1], dtype)
        yield Case(f"by {dtype}", (corpus.ordinary((5,)), extreme), {"num_segments": 3})
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((4, 3)), corpus.indices((4,), 2))
        yield Case(layout, inputs, {"num_segments": 2}, layout=layout)


@cases.of(specs.BINCOUNT, oracle=oracle.bincount, dtypes=dt.NUMERIC)
def bincount(corpus: Corpus) -> Iterator[Case]:
    """The dtype is that of the weights; numbers beyond the size are not counted."""
    x = corpus.indices((9,), 6)
    for size in (6, 4, 0, 10):
        yield Case(f"size {size}", (x, corpus.ordinary((9,))), {"size": size})
    edges = corpus.edges()
    numbers = np.arange(len(edges), dtype=np.int32)
    yield Case("edges apart", (numbers, edges), {"size": len(edges)})
    yield Case("no weights", (x, None), {"size": 6})
    yield Case("weights of size 0", (x, corpus.ordinary((0,))), {"size": 6})
    yield Case("nothing", (np.zeros(0, np.int32), corpus.ordinary((0,))), {"size": 3})
    yield Case("a table", (corpus.indices((2, 3), 4), corpus.ordinary((2, 3))), {"size": 4})
    for shape in ((), (1, 2, 1, 3, 1)):
        inputs = (corpus.indices(shape, 4), corpus.ordinary(shape))
        yield Case(f"rank {len(shape)}", inputs, {"size": 4})
    yield Case("large", (corpus.indices((LARGE,), 5), corpus.ordinary((LARGE,))), {"size": 5})
    beyond = np.array([LARGE, 3, LARGE - 2], np.int32)  # 16 bits
    yield Case("large numbers", (beyond, corpus.ordinary((3,))), {"size": LARGE + 1})
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        numbers = np.array([0, 2, 2, np.iinfo(dtype).max], dtype=dtype)
        yield Case(f"of {dtype}", (numbers, corpus.ordinary((4,))), {"size": 3})
    yield Case("sliced", (x, corpus.ordinary((9,))), {"size": 6}, layout="sliced")


@cases.of(specs.DENSE_BINCOUNT, oracle=oracle.dense_bincount, dtypes=dt.NUMERIC)
def dense_bincount(corpus: Corpus) -> Iterator[Case]:
    """Counts of each row; or whether a number occurs."""
    table = corpus.indices((3, 5), 4)
    for binary in (False, True):
        how = {"size": 4, "binary_output": binary}
        said = "binary " if binary else ""
        weights = corpus.ordinary((3, 5))
        yield Case(f"{said}rows", (table, weights), how)
        yield Case(f"{said}one row", (table[0].copy(), weights[0].copy()), how)
        yield Case(f"{said}no weights", (table, None), how)
        yield Case(f"{said}weights of size 0", (table, corpus.ordinary((0,))), how)
        yield Case(f"{said}beyond the size", (table, weights), {**how, "size": 2})
    edges = corpus.edges()
    numbers = np.arange(len(edges), dtype=np.int32)
    yield Case("edges apart", (numbers[None], edges[None]), {"size": len(edges)})
    yield Case("size 0", (table, corpus.ordinary((3, 5))), {"size": 0})
    yield Case("no rows", (np.zeros((0, 3), np.int32), corpus.ordinary((0, 3))), {"size": 2})
    yield Case("empty rows", (np.zeros((2, 0), np.int32), corpus.ordinary((2, 0))), {"size": 2})
    long = (corpus.indices((2, LARGE // 2 + 1), 3), corpus.ordinary((2, LARGE // 2 + 1)))
    yield Case("large", long, {"size": 3})
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        numbers = np.array([[0, 2, 2, np.iinfo(dtype).max]], dtype=dtype)
        yield Case(f"of {dtype}", (numbers, corpus.ordinary((1, 4))), {"size": 3})
    yield Case("transposed", (table, corpus.ordinary((3, 5))), {"size": 4}, layout="transposed")


@cases.gradients(specs.UNSORTED_SEGMENT_SUM, "x")
def segment_points(corpus: Corpus) -> Iterator[Case]:
    ids = np.array([1, 0, -1, 1, 5], dtype=np.int32)
    yield Case("rows", (corpus.ordinary((5, 2)), ids), {"num_segments": 3})
    yield Case("no segments", (corpus.ordinary((5,)), ids), {"num_segments": 0})
    one = (corpus.ordinary(()), np.array(2, dtype=np.int32))
    yield Case("one number", one, {"num_segments": 3})
    table = np.array([[0, 2], [2, 2]], dtype=np.int32)
    yield Case("table of ids", (corpus.ordinary((2, 2, 2)), table), {"num_segments": 3})
    yield Case("one column", (corpus.ordinary((5, 1)), ids), {"num_segments": 3})
    yield Case("nothing", (corpus.ordinary((0, 2)), ids[:0]), {"num_segments": 3})
    yield Case("one id", (corpus.ordinary((2,)), np.array(1, dtype=np.int32)), {"num_segments": 3})


@cases.gradients(specs.BINCOUNT, "weights")
def bincount_points(corpus: Corpus) -> Iterator[Case]:
    x = np.array([0, 2, 5, 2], dtype=np.int32)
    yield Case("some beyond", (x, corpus.ordinary((4,))), {"size": 4})
    for shape in ((), (1, 2, 2)):
        inputs = (corpus.indices(shape, 4), corpus.ordinary(shape))
        yield Case(f"rank {len(shape)}", inputs, {"size": 4})
    yield Case("nothing", (x[:0], corpus.ordinary((0,))), {"size": 4})


@cases.gradients(specs.DENSE_BINCOUNT, "weights")
def dense_bincount_points(corpus: Corpus) -> Iterator[Case]:
    x = np.array([[0, 2, 5], [2, 2, 1]], dtype=np.int32)
    yield Case("rows", (x, corpus.ordinary((2, 3))), {"size": 4})
    yield Case("one row", (x[0].copy(), corpus.ordinary((3,))), {"size": 4})
    yield Case("one column", (x[:, :1].copy(), corpus.ordinary((2, 1))), {"size": 4})
    yield Case("nothing", (x[:0], corpus.ordinary((0, 3))), {"size": 4})
    only = {"size": 4, "binary_output": True}
    yield Case("whether, not how much", (x, corpus.ordinary((2, 3))), only)
