"""Cases for sparse tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, OutOfRangeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import sparse as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _numbers(*values: Any, dtype: str = "int32") -> Array:
    return np.array(values, dtype=dtype)


# (case, coordinates, dense shape)
_ROWS: tuple[tuple[str, list[list[int]], list[int]], ...] = (
    ("some empty", [[0, 0], [1, 0], [1, 3], [1, 4], [3, 2], [3, 3]], [5, 6]),
    ("none empty", [[0, 0], [1, 0], [1, 3], [1, 4]], [2, 6]),
    ("no order", [[1, 2], [3, 3], [0, 1], [3, 1], [0, 3]], [5, 5]),
    ("one column", [[2], [0], [2]], [4]),
    ("three columns", [[1, 2, 0], [1, 0, 3]], [2, 3, 4]),
)


@cases.of(specs.SPARSE_FILL_EMPTY_ROWS, oracle=oracle.fill_empty_rows)
def sparse_fill_empty_rows(corpus: Corpus) -> Iterator[Case]:
    """Rows in any order, values of every dtype."""
    default = corpus.ordinary(())
    for name, places, shape in _ROWS:
        inputs = (_numbers(*places), corpus.ordinary((len(places),)), _numbers(*shape), default)
        yield Case(name, inputs)
    none = (np.zeros((0, 2), np.int32), corpus.ordinary((0,)))
    yield Case("no elements", (*none, _numbers(3, 2), default))
    yield Case("no rows", (*none, _numbers(0, 5), default))
    edges = corpus.edges()
    rows = np.arange(len(edges), dtype=np.int64)[:, None] * 2
    size = _numbers(2 * len(edges), dtype="int64")
    yield Case("edges", (rows, edges, size, edges[-1:].reshape(())))
    many = corpus.indices((1000, 2), LARGE)
    yield Case("large", (many, corpus.ordinary((1000,)), _numbers(LARGE, LARGE), default))
    one = (corpus.ordinary((1,)), _numbers(2, 2), default)
    yield Case("row beyond", (_numbers([2, 0]), *one), expected=OutOfRangeError)
    yield Case("negative row", (_numbers([-1, 0]), *one), expected=OutOfRangeError)
    negative = (one[0], _numbers(-2, 2), default)
    yield Case("negative shape", (_numbers([0, 0]), *negative), expected=ShapeError)
    yield Case("rank 1", (_numbers(0, 0), *one), expected=ShapeError)
    small = (_numbers([3], dtype="int8"), one[0], _numbers(300), default)
    yield Case("too large for int8", small, expected=ArgumentError)


@cases.gradients(specs.SPARSE_FILL_EMPTY_ROWS, "values", "default_value")
def fill_points(corpus: Corpus) -> Iterator[Case]:
    for name, places, shape in _ROWS:
        inputs = (_numbers(*places), corpus.ordinary((len(places),)), _numbers(*shape))
        yield Case(name, (*inputs, corpus.ordinary(())))
    none = (np.zeros((0, 2), np.int32), corpus.ordinary((0,)), _numbers(3, 2))
    yield Case("no elements", (*none, corpus.ordinary(())))
    one = (_numbers([1, 0]), corpus.ordinary((1,)), _numbers(3, 2))
    yield Case("one element", (*one, corpus.ordinary(())))


# (case, shape, new shape)
_SHAPES: tuple[tuple[str, list[int], list[int]], ...] = (
    ("split", [2, 3, 6], [9, 4]),
    ("merge", [4, 5], [20]),
    ("expand", [6], [1, 3, 1, 2]),
    ("missing size", [2, 3, 4], [4, -1]),
    ("missing size of 1", [2, 3], [-1, 2, 3]),
    ("same", [5, 5], [5, 5]),
    ("rank 6", [3, 4], [1, 2, 1, 3, 1, 2]),
)


@cases.of(specs.SPARSE_RESHAPE, oracle=oracle.reshape)
def sparse_reshape(corpus: Corpus) -> Iterator[Case]:
    """Coordinates of every integer dtype."""
    dtype = corpus.dtype.name
    for name, old, new in _SHAPES:
        places = np.stack([corpus.indices((7,), size, dtype) for size in old], axis=1)
        yield Case(name, (places, _numbers(*old), _numbers(*new, dtype="int64")))
    none = np.zeros((0, 2), dtype)
    yield Case("no elements", (none, _numbers(2, 3), _numbers(6)))
    yield Case("empty tensor", (none, _numbers(2, 0), _numbers(0, 3)))
    yield Case("rank 0", (np.zeros((1, 0), dtype), np.zeros(0, np.int32), _numbers(1, 1)))
    yield Case("to rank 0", (_numbers([0, 0], dtype=dtype), _numbers(1, 1), np.zeros(0, np.int32)))
    if corpus.dtype.itemsize > 2:
        vast = np.array([[70000, 5], [99999, 99999], [0, 3]], dtype)
        sizes = (_numbers(100000, 100000, dtype="int64"), _numbers(1000, 10000000, dtype="int64"))
        if corpus.dtype.itemsize > 4:
            yield Case("more places than 32 bits count", (vast, *sizes))
        many = corpus.indices((LARGE, 2), 300, dtype)
        yield Case("large", (many, _numbers(300, 300), _numbers(9, -1)))
    one = (_numbers([0, 0], dtype=dtype), _numbers(2, 3))
    for name, wrong in (
        ("other size", [7]),
        ("two missing", [-1, -1]),
        ("negative", [-2, -3]),
        ("no divisor", [-1, 4]),
        ("missing beside 0", [-1, 0]),
    ):
        yield Case(name, (*one, _numbers(*wrong)), expected=ShapeError)
    beyond = (_numbers([0, 3], dtype=dtype), _numbers(2, 3), _numbers(6))
    yield Case("beyond", beyond, expected=OutOfRangeError)
    if corpus.dtype in (dt.int8, dt.uint8):
        far = (_numbers([9, 99], dtype=dtype), _numbers(10, 100), _numbers(1000))
        yield Case("too large", far, expected=ArgumentError)


# (case, shape of the data, indices, ids)
_SEGMENTS: tuple[tuple[str, tuple[int, ...], list[int], list[int]], ...] = (
    ("elements", (10,), [8, 3, 0, 9], [0, 1, 2, 2]),
    ("rows", (10, 4), [8, 3, 0, 9], [0, 1, 2, 2]),
    ("wide rows", (10, 9), [8, 3, 0, 9, 9, 1], [0, 0, 0, 1, 1, 1]),
    ("blocks", (10, 2, 3), [8, 3, 0, 9], [0, 0, 2, 2]),
    ("holes", (10, 4), [8, 3, 0, 9], [2, 5, 5, 5]),
    ("nothing", (3, 2), [], []),
    ("no rows", (0, 2), [], []),
    ("empty rows", (3, 0), [1, 2], [0, 2]),
    ("rank 6", (3, 1, 2, 1, 1, 2), [0, 2, 2], [0, 0, 1]),
)


@cases.of(specs.SPARSE_SEGMENT_SUM, oracle=oracle.segment_sum)
def sparse_segment_sum(corpus: Corpus) -> Iterator[Case]:
    """Segments without rows, rows that come often, ids out of order."""
    return _segments(corpus)


@cases.of(specs.SPARSE_SEGMENT_MEAN, oracle=oracle.segment_mean)
def sparse_segment_mean(corpus: Corpus) -> Iterator[Case]:
    """The same; small integers, because sums of 64-bit integers wrap."""
    return _segments(corpus)


def _segments(corpus: Corpus) -> Iterator[Case]:
    for name, shape, indices, ids in _SEGMENTS:
        inputs = (corpus.ordinary(shape), _numbers(*indices), _numbers(*ids))
        yield Case(name, inputs)
    for width in (1, 6):
        many = np.sort(corpus.indices((LARGE // width,), 300))
        table = corpus.ordinary((50, width))
        yield Case(f"large, {width} wide", (table, corpus.indices(many.shape, 50), many))
    for dtype in ("int64", "uint8"):
        numbers = (_numbers(1, 0, dtype=dtype), _numbers(0, 2, dtype=dtype))
        yield Case(f"by {dtype}", (corpus.ordinary((2, 3)), *numbers))
    sliced = (corpus.ordinary((4, 3)), _numbers(3, 0, 1), _numbers(0, 0, 1))
    yield Case("sliced", sliced, layout="sliced")
    yield Case("transposed", sliced, layout="transposed")
    data = corpus.ordinary((3, 2))
    for name, indices, ids, error in (
        ("index beyond", [0, 3], [0, 0], OutOfRangeError),
        ("negative index", [0, -1], [0, 0], OutOfRangeError),
        ("descending", [0, 1, 2], [0, 1, 0], ArgumentError),
        ("negative id", [0, 1], [-1, 0], ArgumentError),
        ("lengths differ", [0, 1], [0], ShapeError),
    ):
        yield Case(name, (data, _numbers(*indices), _numbers(*ids)), expected=error)
    yield Case("rank 0", (corpus.ordinary(()), _numbers(0), _numbers(0)), expected=ShapeError)


@cases.gradients(specs.SPARSE_SEGMENT_SUM, "data")
def sum_points(corpus: Corpus) -> Iterator[Case]:
    return _points(corpus)


@cases.gradients(specs.SPARSE_SEGMENT_MEAN, "data")
def mean_points(corpus: Corpus) -> Iterator[Case]:
    return _points(corpus)


def _points(corpus: Corpus) -> Iterator[Case]:
    indices, ids = _numbers(2, 0, 2, 2, 1), _numbers(0, 0, 2, 2, 2)
    yield Case("rows", (corpus.ordinary((4, 2)), indices, ids))
    yield Case("elements", (corpus.ordinary((4,)), indices, ids))
    yield Case("nothing", (corpus.ordinary((2, 2)), indices[:0], ids[:0]))
    yield Case("blocks", (corpus.ordinary((4, 1, 2)), indices, ids))
    yield Case("no rows", (corpus.ordinary((0, 2)), indices[:0], ids[:0]))
    yield Case("empty rows", (corpus.ordinary((4, 0)), indices, ids))
