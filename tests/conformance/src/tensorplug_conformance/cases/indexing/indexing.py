"""Cases for reading and writing at indices."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import ArgumentError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded, Case, Relation
from tensorplug_conformance.corpus import JUST_LARGER, LARGE, VAST, Corpus
from tensorplug_conformance.oracle.indexing import indexing as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug_conformance.case import Array

cases = CaseTable()


OUTSIDE: Final = np.array([[-1], [4], [-4], [2**31 - 1], [-(2**31)], [1]], np.int32)
"""Indices of an axis of length 3, of which the first and the last are in range."""


def outside(
    inputs: tuple[Any, ...], check: Callable[[Array], Iterable[Any]], **attributes: Any
) -> Case:
    """Return a case of ``OUTSIDE``: it is refused, or ``check`` yields what must be true."""

    def relation(out: Array) -> Iterator[tuple[str, Array, Bounded]]:
        facts = np.array(list(check(out)), int)
        yield "of what must be true", facts, Bounded(np.ones_like(facts), np.zeros(()))

    expected = Relation(relation)
    return Case("out of range", inputs, attributes, expected=expected, refusal=ArgumentError)


def _of(rows: Array, *others: Array) -> Callable[[Array], Iterator[bool]]:
    """Return a check: each row is one of these, and what is read in range is the right one."""

    def check(out: Array) -> Iterator[bool]:
        known = [*rows, *(row for other in others for row in other)]
        yield from (any(map(np.array_equal, [one] * len(known), known)) for one in out)
        if not others:
            yield from (np.array_equal(out[0], rows[-1]), np.array_equal(out[-1], rows[1]))

    return check


BITS: Final = [[1], [2], [4], [8], [16], [32]]


def bits_once(out: Array) -> Iterator[bool]:
    """Yield whether sums of ``BITS`` at ``OUTSIDE`` have each at most once, and those in range."""
    held = out.real.astype(int).ravel()[:, None] & np.ravel(BITS) > 0
    yield from held.sum(axis=0) <= 1
    yield from (held[-1, 0], held[1, -1])


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
    ("batched, axis in front", (2, 5, 3), (2, 7), {"axis": 1, "batch_dims": 1}),
    ("batched tables", (2, 5), (2, 3, 2), {"axis": 1, "batch_dims": 1}),
    ("many batches", (67, 5), (67, 3), {"axis": 1, "batch_dims": 1}),
    ("rank 6", (1, 2, 3, 2, 1, 2), (2,), {"axis": 2}),
    ("rank 9", (1, 2, 1, 2, 3, 2, 1, 2, 1), (2,), {"axis": 4}),
    ("batched, rank 8", (2, 3, 1, 2, 1, 2, 4, 2), (2, 3, 5), {"axis": 6, "batch_dims": 2}),
    ("large", (37,), (LARGE,), {}),
    ("from large", (LARGE,), (9,), {}),
)


@cases.of(specs.GATHER_V2, oracle=oracle.gather, signed_zero=True)
def gather(corpus: Corpus) -> Iterator[Case]:
    """Repeated indices, the first and the last, negative ones, every index dtype."""
    for name, shape, index_shape, attributes in _GATHER:
        below = shape[attributes.get("axis", 0)]
        indices = corpus.indices(index_shape, below, signed=True)
        yield Case(name, (corpus.ordinary(shape), indices), attributes)
    deep = corpus.indices((1, 2, 1, 3, 1), 3, signed=True)
    yield Case("indices of rank 5", (corpus.ordinary((3, 2)), deep))
    if corpus.dtype is dt.float32:
        rows = corpus.indices((1031,), 257, signed=True)
        yield Case("huge", (corpus.ordinary((257, 1033)), rows), native=True)
        for count in (*JUST_LARGER, VAST):
            ends = np.array([-1, 0, count - 2, count - 3, 1, -2, count // 2], np.int32)
            many = patterns.vast(corpus)[:count]
            for label, places in (("", ends), (", forwards", ends % count)):
                yield Case(f"from {count}{label}", (many, places), native=True, light=True)
        columns = (corpus.ordinary((1031, 257)), corpus.indices((1033,), 257, signed=True))
        yield Case("huge, by column", columns, {"axis": 1}, native=True)
    edges = corpus.edges()
    backwards = np.arange(len(edges), dtype=np.int32)[::-1].copy()
    yield Case("edges", (edges, backwards))
    yield Case("from the end", (edges, np.array([-1, 0, -len(edges)], dtype=np.int32)))
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        yield Case(
            f"by {dtype}", (corpus.ordinary((5, 2)), corpus.indices((3,), 5, dtype, signed=True))
        )
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((4, 5)), corpus.indices((2, 3), 5, signed=True))
        yield Case(layout, inputs, {"axis": 1}, layout=layout)
    x = corpus.ordinary((3, 2))
    yield outside((x, OUTSIDE[:, 0]), _of(x))


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
    ("rank 9", (2, 1, 2, 1, 2, 1, 2, 3, 2), (4,), 7),
    ("large result", (LARGE,), (7,), 1),
    ("many collisions", (3,), (1000,), 1),
)


@cases.of(specs.SCATTER_ND, oracle=oracle.scatter_nd)
def scatter_nd(corpus: Corpus) -> Iterator[Case]:
    """Duplicates add up; places without an update are zero."""
    for name, shape, lead, depth in _SCATTER:
        indices = corpus.places(lead, shape[:depth])
        updates = corpus.ordinary((*lead, *shape[depth:]))
        yield Case(name, (indices, updates), {"shape": shape})
    places = corpus.indices((5,), 3)
    yield Case("places of rank 1", (places, corpus.ordinary((5,))), {"shape": (3,)})
    wide_rows = (corpus.indices((50, 1), 4), corpus.ordinary((50, 6)))
    yield Case("many wide rows", wide_rows, {"shape": (4, 6)})
    edges = corpus.edges()
    apart = np.arange(len(edges), dtype=np.int32)[:, None]
    yield Case("edges apart", (apart, edges), {"shape": (len(edges) + 1,)})
    if corpus.dtype is dt.float32:
        for count in (*JUST_LARGER, VAST):
            ends = np.array([[count - 1], [0], [count - 2], [count // 2]], np.int32)
            right = np.zeros(count, np.float32)
            right[ends[:, 0]] = values = corpus.of([1, 2, 3, 4])
            label = f"into {count}"
            into = {"shape": (count,)}
            yield Case(label, (ends, values), into, expected=(right,), native=True, light=True)
    same = np.zeros((3, 1), dtype=np.int32)
    yield Case("one place", (same, corpus.of([1, 2, 3])), {"shape": (2,)})
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        inputs = (corpus.indices((4, 1), 3, dtype), corpus.ordinary((4,)))
        yield Case(f"by {dtype}", inputs, {"shape": (3,)})
    for layout in ("transposed", "sliced"):
        inputs = (corpus.indices((3, 1), 4), corpus.ordinary((3, 2)))
        yield Case(layout, inputs, {"shape": (4, 2)}, layout=layout)
    ends = np.array([[-1], [0], [-3], [-1]], dtype=np.int32)
    yield Case("from the end", (ends, corpus.ordinary((4, 2))), {"shape": (3, 2)})
    yield outside((OUTSIDE, corpus.of(BITS)), bits_once, shape=(3, 1))


# (case, shape of params, leading shape of the indices, their depth)
_GATHER_ND: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int], ...] = (
    ("elements", (5,), (4,), 1),
    ("rows", (4, 3), (3,), 1),
    ("cells", (3, 4), (6,), 2),
    ("one row", (4, 3), (), 1),
    ("leading shape", (4, 2), (2, 3), 1),
    ("blocks", (2, 3, 2), (5,), 2),
    ("nothing named", (2, 2), (3,), 0),
    ("no indices", (3, 2), (0,), 1),
    ("empty rows", (3, 0), (2,), 1),
    ("rank 6", (2, 1, 2, 1, 2, 2), (4,), 5),
    ("indices of rank 6", (4, 3), (1, 2, 1, 3, 1), 1),
    ("rank 9", (2, 1, 2, 1, 2, 2, 3, 1, 2), (4,), 7),
    ("large", (7, 5, 8), (LARGE // 8 + 1,), 2),
)


@cases.of(specs.GATHER_ND, oracle=oracle.gather_nd, signed_zero=True)
def gather_nd(corpus: Corpus) -> Iterator[Case]:
    """Indices of every depth and dtype, negative ones among them."""
    for name, shape, lead, depth in _GATHER_ND:
        yield Case(name, (corpus.ordinary(shape), corpus.places(lead, shape[:depth], signed=True)))
    edges = corpus.edges()
    backwards = np.arange(len(edges), dtype=np.int32)[::-1, None].copy()
    yield Case("edges", (edges, backwards))
    yield Case("from the end", (corpus.ordinary((3, 4)), np.array([[-1, 0], [-3, -4]], np.int32)))
    turns = np.array([[-1, 1, 2], [1, -3, 0], [0, 2, -4], [-2, -1, 3]], np.int32)
    yield Case("from the end by turns", (corpus.ordinary((2, 3, 4)), turns))
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        yield Case(
            f"by {dtype}", (corpus.ordinary((5, 2)), corpus.indices((3, 1), 5, dtype, signed=True))
        )
    if corpus.dtype in dt.INTEGER:
        places = np.array([[3], [0], [2], [1]], corpus.dtype.numpy)
        yield Case("equal params and indices", (places, places), alike=("params", "indices"))
    for layout in ("transposed", "sliced"):
        inputs = (corpus.ordinary((4, 5, 2)), corpus.places((3,), (4, 5), signed=True))
        yield Case(layout, inputs, layout=layout)
    x = corpus.ordinary((3, 2))
    yield outside((x, OUTSIDE), _of(x))


@cases.of(specs.TENSOR_SCATTER_UPDATE, oracle=oracle.tensor_scatter_update, signed_zero=True)
def tensor_scatter_update(corpus: Corpus) -> Iterator[Case]:
    """The last of several updates of one place stands."""
    for name, shape, lead, depth in _SCATTER:
        tensor, updates = corpus.ordinary(shape), corpus.ordinary((*lead, *shape[depth:]))
        yield Case(name, (tensor, corpus.places(lead, shape[:depth], signed=True), updates))
    edges = corpus.edges()
    some = np.arange(len(edges), dtype=np.int32)[::2, None].copy()
    yield Case("edges", (edges, some, edges[::-1][: len(some)].copy()))
    yield Case("places of rank 1", (edges, some[:, 0].copy(), edges[: len(some)].copy()))
    ends = np.array([[-1], [0], [-1]], dtype=np.int32)
    yield Case("from the end", (corpus.ordinary((3, 2)), ends, corpus.ordinary((3, 2))))
    for dtype in sorted(dtype.name for dtype in dt.INTEGER - {dt.int32}):
        inputs = (
            corpus.ordinary((3,)),
            corpus.indices((4, 1), 3, dtype, signed=True),
            corpus.ordinary((4,)),
        )
        yield Case(f"by {dtype}", inputs)
    for layout in ("transposed", "sliced"):
        inputs = (
            corpus.ordinary((4, 2)),
            corpus.indices((3, 1), 4, signed=True),
            corpus.ordinary((3, 2)),
        )
        yield Case(layout, inputs, layout=layout)
    x, updates = corpus.ordinary((3, 2)), corpus.ordinary((6, 2))
    yield outside((x, OUTSIDE, updates), _of(x, updates))


@cases.of(specs.SPARSE_TO_DENSE, oracle=oracle.sparse_to_dense, signed_zero=True)
def sparse_to_dense(corpus: Corpus) -> Iterator[Case]:
    """Values and defaults of rank 0 and 1, indices of rank 0 to 2."""
    one, zero = corpus.ordinary((1,))[0, ...], corpus.ordinary(())
    flat = corpus.indices((4,), 6, signed=True)
    yield Case("elements", (flat, corpus.ordinary((4,)), zero), {"output_shape": (6,)})
    yield Case("no default", (flat, corpus.ordinary((4,)), None), {"output_shape": (6,)})
    yield Case("one value", (flat, one, zero), {"output_shape": (6,)})
    yield Case("one place", (np.array(-2, np.int32), one, zero), {"output_shape": [6]})
    cells = corpus.places((5,), (3, 4), signed=True)
    yield Case("cells", (cells, corpus.ordinary((5,)), zero), {"output_shape": (3, 4)})
    same = np.zeros((3, 2), dtype=np.int64)
    yield Case("collisions", (same, corpus.ordinary((3,)), zero), {"output_shape": (2, 2)})
    nothing, values = np.zeros((0, 2), np.int32), corpus.ordinary((0,))
    yield Case("no values", (nothing, values, zero), {"output_shape": (2, 3)})
    yield Case("nowhere", (nothing, values, None), {"output_shape": (0, 3)})
    edges = corpus.edges()
    places = np.arange(len(edges), dtype=np.int32) * 2
    for number in (0, -1):
        inputs = (places, edges, edges[number, ...])
        yield Case(f"edges {number}", inputs, {"output_shape": (2 * len(edges),)})
    some = (np.array([5, LARGE - 1, 0], np.int32), corpus.ordinary((3,)), zero)
    yield Case("large", some, {"output_shape": (LARGE,)})
    values = corpus.ordinary((6,))
    yield outside((OUTSIDE, values, zero), _of(values, zero[None]), output_shape=(3,))


@cases.of(specs.ONE_HOT, oracle=oracle.one_hot)
def one_hot(corpus: Corpus) -> Iterator[Case]:
    """Indices outside [0, depth) give rows of off_value."""
    classes = corpus.of([0, 2, 1, 2])
    yield Case("default", (classes,), {"depth": 3})
    yield Case("values", (classes,), {"depth": 3, "on_value": 5, "off_value": -1})
    yield Case("too deep", (corpus.of([0, 3, 7]),), {"depth": 3})
    yield Case("depth 0", (classes,), {"depth": 0})
    yield Case("rank 0", (corpus.of(1),), {"depth": 2})
    yield Case("rank 3", (corpus.of([[[0, 1]], [[2, 0]]]),), {"depth": 3})
    yield Case("rank 5", (corpus.small((1, 2, 1, 2, 3)),), {"depth": 3})
    yield Case("empty", (corpus.of([]).reshape(0, 2),), {"depth": 3})
    yield Case("edges", (corpus.edges(),), {"depth": 4})
    yield Case("large", (corpus.indices((LARGE // 8,), 9, corpus.dtype.name),), {"depth": 9})
    for dtype in ("int32", "bool", "float64", "float16", "uint8"):
        yield Case(f"as {dtype}", (classes,), {"depth": 3, "dtype": dtype})
    for dtype in ("int64", "uint64", "int32"):
        far = Corpus(dt.of(dtype)).far()
        for on, off in pairwise(far):
            values = {"depth": 3, "on_value": on, "off_value": off, "dtype": dtype}
            yield Case(f"{dtype} {on} and {off}", (classes,), values)
    if corpus.dtype in dt.SIGNED:
        yield Case("negative", (corpus.of([-1, 0, -3]),), {"depth": 3})
    yield Case("transposed", (corpus.of([[0, 1, 2], [2, 1, 0]]),), {"depth": 3}, "transposed")
    yield Case("sliced", (corpus.of([[0, 1, 2], [2, 1, 0]]),), {"depth": 3}, "sliced")


@cases.gradients(specs.GATHER_V2, "x")
def gather_points(corpus: Corpus) -> Iterator[Case]:
    repeated = np.array([0, 2, 0], dtype=np.int32)
    yield Case("rows", (corpus.ordinary((3, 2)), repeated), {"axis": 0})
    yield Case("columns", (corpus.ordinary((2, 3)), repeated), {"axis": 1})
    batched = np.array([[0, -3], [-1, 1]], dtype=np.int32)
    yield Case("batched", (corpus.ordinary((2, 3)), batched), {"axis": 1, "batch_dims": 1})
    yield Case("inner axis", (corpus.ordinary((2, 3, 3)), batched), {"axis": 2, "batch_dims": -1})
    deep = {"axis": 2, "batch_dims": 2}
    yield Case("two batches", (corpus.ordinary((2, 2, 3)), batched[..., None].copy()), deep)
    last = np.array([-1, 0, -1], dtype=np.int32)
    yield Case("from the end", (corpus.ordinary((3,)), last), {"axis": 0})
    yield Case("last axis", (corpus.ordinary((2, 1, 3)), repeated), {"axis": -1})
    yield Case("nothing inside", (corpus.ordinary((3, 0)), repeated), {"axis": 0})
    yield Case("no indices", (corpus.ordinary((3, 2)), repeated[:0]), {"axis": 0})


@cases.gradients(specs.SCATTER_ND, "updates")
def scatter_points(corpus: Corpus) -> Iterator[Case]:
    places = np.array([[1], [0], [1]], dtype=np.int32)
    yield Case("elements", (places, corpus.ordinary((3,))), {"shape": (4,)})
    yield Case("rows", (places, corpus.ordinary((3, 2))), {"shape": (3, 2)})
    yield Case("places of rank 1", (places[:, 0].copy(), corpus.ordinary((3,))), {"shape": (3,)})
    yield Case("blocks", (places, corpus.ordinary((3, 1, 2))), {"shape": (3, 1, 2)})
    yield Case("no updates", (places[:0], corpus.ordinary((0, 2))), {"shape": (3, 2)})


@cases.gradients(specs.GATHER_ND, "params")
def gather_nd_points(corpus: Corpus) -> Iterator[Case]:
    cells = np.array([[0, 1], [2, -1], [0, 1]], dtype=np.int32)
    yield Case("cells", (corpus.ordinary((3, 2)), cells))
    yield Case("rows", (corpus.ordinary((3, 2)), cells[:, :1].copy()))
    yield Case("blocks", (corpus.ordinary((3, 1, 2)), cells[:, :1].copy()))
    yield Case("no indices", (corpus.ordinary((3, 2)), cells[:0]))
    yield Case("nothing inside", (corpus.ordinary((3, 0)), cells[:, :1].copy()))


@cases.gradients(specs.TENSOR_SCATTER_UPDATE, "tensor", "updates")
def scatter_update_points(corpus: Corpus) -> Iterator[Case]:
    places = np.array([[1], [0], [1]], dtype=np.int32)
    yield Case("elements", (corpus.ordinary((4,)), places, corpus.ordinary((3,))))
    yield Case("rows", (corpus.ordinary((3, 2)), places, corpus.ordinary((3, 2))))
    flat = places[:, 0].copy()
    yield Case("places of rank 1", (corpus.ordinary((3,)), flat, corpus.ordinary((3,))))
    yield Case("blocks", (corpus.ordinary((3, 1, 2)), places, corpus.ordinary((3, 1, 2))))
    yield Case("no updates", (corpus.ordinary((3, 2)), places[:0], corpus.ordinary((0, 2))))
    yield Case("nothing inside", (corpus.ordinary((3, 0)), places, corpus.ordinary((3, 0))))


@cases.gradients(specs.SPARSE_TO_DENSE, "sparse_values", "default_value")
def sparse_to_dense_points(corpus: Corpus) -> Iterator[Case]:
    places, value = np.array([3, 1, 3], dtype=np.int32), corpus.ordinary(())
    yield Case("elements", (places, corpus.ordinary((3,)), value), {"output_shape": (5,)})
    yield Case("one value", (places, value, corpus.ordinary(())), {"output_shape": (5,)})
    cells = np.array([[0, 1], [1, 1]], dtype=np.int32)
    yield Case("cells", (cells, corpus.ordinary((2,)), value), {"output_shape": (2, 2)})
    yield Case("no default", (cells, corpus.ordinary((2,)), None), {"output_shape": (2, 2)})
    yield Case("nothing", (places[:0], corpus.ordinary((0,)), value), {"output_shape": (5,)})
