"""Cases for ragged tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import ArgumentError, OutOfRangeError, ShapeError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Case
from tensorplug_conformance.corpus import LARGE
from tensorplug_conformance.oracle import ragged as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


def _numbers(*values: Any, dtype: str = "int32") -> Array:
    return np.array(values, dtype=dtype)


_FLAT = [_numbers(0, 3, 3, 7, 9)]
_DEEP = [_numbers(0, 1, 3, 3, 5, 6), _numbers(0, 0, 2, 3, 5, 8, 9)]
_WIDE = [_numbers(0, 1, 3, 3), _numbers(0, 0, 3, 4)]

# (case, splits, shape of the values, indices)
_ROWS: tuple[tuple[str, list[Array], tuple[int, ...], Any], ...] = (
    ("rows", _FLAT, (9,), [2, 1, 0, 3]),
    ("two splits", _DEEP, (9,), [2, 1, 0, 2, 3]),
    ("values of rank 2", _WIDE, (4, 2), [2, 1, 0, 2]),
    ("one row often", _FLAT, (9,), [1, 1, 1, 2, 2, 2, 2, 0]),
    ("a table of indices", _FLAT, (9,), [[2, 1], [0, 3]]),
    ("indices of rank 3", _DEEP, (9,), [[[4], [0]]]),
    ("one row", _FLAT, (9,), 2),
    ("one row of two splits", _DEEP, (9,), 3),
    ("no indices", _FLAT, (9, 3), np.zeros(0, np.int32)),
    ("no values", [_numbers(0, 0, 0)], (0, 2), [1, 1]),
    ("values of rank 6", _FLAT, (9, 1, 2, 1, 1, 2), [3, 0]),
    ("not all values", [_numbers(2, 3, 5)], (9,), [1, 0]),
)


@cases.of(specs.RAGGED_GATHER, oracle=oracle.gather, dtypes=sorted(dt.ANY, key=str))
def ragged_gather(corpus: Corpus) -> Iterator[Case]:
    """Rows that come often or not at all, one and several splits."""
    for name, splits, shape, indices in _ROWS:
        yield Case(name, (splits, corpus.ordinary(shape), np.array(indices, dtype=np.int32)))
    long = [splits.astype(np.int64) for splits in _DEEP]
    values = corpus.ordinary((9,))
    yield Case("int64", (long, values, _numbers(4, 0, dtype="int64")), {"output_ragged_rank": 2})
    ends = np.sort(corpus.indices((999,), LARGE))
    many = [np.concatenate([[0], ends, [LARGE]]).astype(np.int32)]
    yield Case("large", (many, corpus.ordinary((LARGE,)), corpus.indices((900,), 1000)))
    for name, splits, indices, error in (
        ("index beyond", _FLAT, _numbers(2, 10), OutOfRangeError),
        ("negative index", _FLAT, _numbers(-1), OutOfRangeError),
        ("descending", [_numbers(0, 3, 5, 2, 9)], _numbers(0, 2), ArgumentError),
        ("negative splits", [_numbers(-1, 3, 7, 9)], _numbers(0, 2), ArgumentError),
        ("empty splits", [_numbers()], _numbers(), ArgumentError),
        ("past the values", [_numbers(0, 20, 40)], _numbers(0), ArgumentError),
        ("past the rows", [_numbers(0, 9), _FLAT[0]], _numbers(0), ArgumentError),
        ("no splits", [], _numbers(0), ArgumentError),
        ("splits of rank 2", [_FLAT[0][None]], _numbers(0), ShapeError),
    ):
        yield Case(name, (splits, values, indices), expected=error)
    wrong = {"output_ragged_rank": 3}
    yield Case("another rank", (_FLAT, values, _numbers(0)), wrong, expected=ArgumentError)
    yield Case("rank 0", (_FLAT, corpus.ordinary(()), _numbers(0)), expected=ShapeError)


@cases.gradients(specs.RAGGED_GATHER, "params_dense_values")
def gather_points(corpus: Corpus) -> Iterator[Case]:
    """The values are the last output, and the only one with a gradient."""
    for name, splits, shape, indices in _ROWS:
        yield Case(name, (splits, corpus.ordinary(shape), np.array(indices, dtype=np.int32)))
    both = {"output_ragged_rank": 2}
    yield Case("ranks given", (_DEEP, corpus.ordinary((9,)), _numbers(4, 0, 4)), both)


# They determine the number of values: others would make too many.
_ENDS = ("starts", "limits", "deltas")


@cases.of(specs.RAGGED_RANGE, oracle=oracle.ragged_range, ulp={"*": 0.5}, ordinary=_ENDS)
def ragged_range(corpus: Corpus) -> Iterator[Case]:
    """Ranges up and down, empty ones, one number for all rows."""
    of = corpus.of
    yield Case("three", (of([0, 5, 8]), of([8, 7, 8]), of([2, 1, 1])))
    yield Case("one limit", (of([0, 3]), of(9), of([2, 5])))
    yield Case("rank 0", (of(1), of(9), of(3)))
    yield Case("no rows", (of([]), of(9), of(3)))
    yield Case("backwards", (of([5, 3]), of([1, 9]), of(1)))
    last = int(np.iinfo(corpus.dtype.name).max) if corpus.dtype in dt.INTEGER else 100
    yield Case("up to the last", (of([last - 7, last - 1]), of(last), of(3)))
    if corpus.dtype not in dt.UNSIGNED:
        yield Case("down", (of([5, -2, 3]), of([-5, -2, 2]), of([-3, -1, -1])))
    if corpus.dtype in dt.SIGNED:
        first = -last - 1
        yield Case("all", (of([first, last]), of([last, first]), of([last, -last])))
    if corpus.dtype.itemsize == 1:
        middle = (of([100, 120]), of(min(last, 200)), of([9, 5]))
        yield Case("across 127", middle)
    if corpus.floating:
        yield Case("tenths", (of([0.1, 1.3]), of([0.95, 2.25]), of([0.1, 0.3])))
        yield Case("fractions", (of([0, 0.25]), of([1, 1.5]), of([0.25, 0.5])))
        wrong = (of([0]), of([np.inf]), of([1]))
        yield Case("infinite", wrong, expected=ArgumentError)
        yield Case("NaN", (of([np.nan]), of([1]), of([1])), expected=ArgumentError)
    if corpus.dtype.itemsize > 2:
        yield Case("large", (of([0, 9]), of(LARGE), of([1, 2])))
    yield Case("delta 0", (of([0, 1]), of(5), of([1, 0])), expected=ArgumentError)
    yield Case("lengths differ", (of([0, 1]), of([5, 5, 5]), of(1)), expected=ShapeError)
    yield Case("rank 2", (of([[0, 1]]), of(5), of(1)), expected=ShapeError)


@cases.gradients(specs.RAGGED_RANGE, "starts", "deltas", near_only="values decide the size")
def range_points(corpus: Corpus) -> Iterator[Case]:
    """Limits between two values: near one, the number of values changes."""
    of = corpus.of
    yield Case("three", (of([0, 5, 8]), of([7.5, 6.5, 7]), of([2, 1, 1])))
    yield Case("one start", (of(0.5), of([4, 0, -3]), of([1, 1, -1])))
    yield Case("one delta", (of([0.5, 1]), of([4, 2.5]), of(1)))
    yield Case("rank 0", (of(1), of(9.5), of(3)))
    yield Case("no rows", (of([]), of(9.5), of(3)))
    yield Case("one row", (of([0.5]), of([4]), of([1])))


_IDS = ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
_SPLITS = ["ROW_SPLITS"]
_BY_IDS = [_numbers(4).reshape(()), _numbers(0, 0, 0, 2, 2, 2, 2, 3, 3)]
_DEEP_IDS = [
    _numbers(5).reshape(()),
    _numbers(0, 1, 1),
    _numbers(1, 1, 1, 2),
    _numbers(0, 0, 1, 1, 2, 2, 3, 3),
]

# (case, shape, shape of the values, partitions, their types)
_DENSE: tuple[tuple[str, Any, tuple[int, ...], list[Array], list[str]], ...] = (
    ("by ids", [4, 4], (9,), _BY_IDS, _IDS),
    ("by splits", [4, 4], (9,), _FLAT, _SPLITS),
    ("any shape", -1, (9,), _FLAT, _SPLITS),
    ("any width", [-1, -1], (9,), _BY_IDS, _IDS),
    ("cut and filled", [3, 5], (9,), _BY_IDS, _IDS),
    ("values of rank 2", [3, 5, 2], (9, 2), _BY_IDS, _IDS),
    ("any values of rank 3", [-1, 2, -1, 2], (9, 3, 2), _FLAT, _SPLITS),
    ("cut", [3, 3], (9,), _BY_IDS, _IDS),
    ("three dimensions", [5, 2, 3], (9,), _DEEP, _SPLITS * 2),
    ("three, cut", [4, 1, 2], (9,), _DEEP, _SPLITS * 2),
    ("four", [4, 2, 3, 2], (8,), _DEEP_IDS, [*_IDS, "VALUE_ROWIDS", "VALUE_ROWIDS"]),
    ("four, cut", [2, 2, 2, 2], (8,), _DEEP_IDS, [*_IDS, "VALUE_ROWIDS", "VALUE_ROWIDS"]),
    ("splits, then ids", -1, (4,), [_FLAT[0], _numbers(0, 3, 3, 8)], [*_SPLITS, "VALUE_ROWIDS"]),
    ("lower case", [4, 4], (9,), _FLAT, ["row_splits"]),
    ("first dimension alone", [5, 3], (4, 3), [_numbers(4).reshape(())], ["FIRST_DIM_SIZE"]),
    ("no values", [2, 3], (0,), [_numbers(0, 0)], _SPLITS),
    ("no rows", -1, (0, 2), [_numbers(0)], _SPLITS),
    ("nothing left", [0, 3], (9,), _FLAT, _SPLITS),
)


@cases.of(specs.RAGGED_TENSOR_TO_TENSOR, oracle=oracle.to_tensor)
def ragged_tensor_to_tensor(corpus: Corpus) -> Iterator[Case]:
    """Every kind of partition, cut, filled up and as wide as the longest row."""
    default = corpus.ordinary(())
    for name, shape, values, partitions, kinds in _DENSE:
        inputs = (np.array(shape, np.int32), corpus.ordinary(values), default, partitions)
        yield Case(name, inputs, {"row_partition_types": kinds})
    edges = np.resize(corpus.edges(), 9)
    inputs = (np.array([4, 4], np.int32), edges, default, _FLAT)
    yield Case("special values", inputs, {"row_partition_types": _SPLITS})
    table, shape = corpus.ordinary((9, 2)), _numbers(4, 4, 2)
    for bad in ((2,), (1,)):
        inputs = (shape, table, corpus.ordinary(bad), _FLAT)
        yield Case(f"default {bad}", inputs, {"row_partition_types": _SPLITS})
    long = [splits.astype(np.int64) for splits in _DEEP]
    inputs = (_numbers(-1, -1, -1, dtype="int64"), corpus.ordinary((9,)), default, long)
    yield Case("int64", inputs, {"row_partition_types": _SPLITS * 2})
    many = [np.arange(0, 2**10 + 1, 4, dtype=np.int32)]
    inputs = (_numbers(2**12, 17), corpus.ordinary((2**10,)), default, many)
    yield Case("large", inputs, {"row_partition_types": _SPLITS})
    for name, kinds, partitions, sizes, error in (
        ("descending splits", _SPLITS, [_numbers(0, 5, 3, 9)], [4, 4], ArgumentError),
        ("splits from 1", _SPLITS, [_numbers(1, 9)], [4, 4], ArgumentError),
        ("too few", _SPLITS, [_numbers(0, 8)], [4, 4], ArgumentError),
        ("descending ids", _IDS, [_numbers(4), _numbers(*[1] * 8, 0)], [4, 4], ArgumentError),
        ("negative ids", _IDS, [_numbers(4), _numbers(-1, *[1] * 8)], [4, 4], ArgumentError),
        ("ids beyond", _IDS, [_numbers(4), _numbers(*[1] * 8, 4)], [4, 4], ArgumentError),
        ("other rank", _SPLITS, _FLAT, [4, 4, 4], ShapeError),
        ("negative size", _SPLITS, _FLAT, [4, -2], ShapeError),
        ("scalar shape", _SPLITS, _FLAT, 4, ShapeError),
        ("negative rows", _IDS, [_numbers(-4), _BY_IDS[1]], [4, 4], ShapeError),
        ("ids first", ["VALUE_ROWIDS"], _BY_IDS[1:], [4, 4], ArgumentError),
        ("row lengths", ["ROW_LENGTHS"], _FLAT, [4, 4], ArgumentError),
        ("no partitions", [], [], [4], ArgumentError),
        ("a partition too few", _IDS, _BY_IDS[:1], [4, 4], ArgumentError),
    ):
        inputs = (np.array(sizes, np.int32), corpus.ordinary((9,)), default, partitions)
        yield Case(name, inputs, {"row_partition_types": kinds}, expected=error)
    wide = {"row_partition_types": _SPLITS}
    inputs = (_numbers(4, 4, 3), table, default, _FLAT)
    yield Case("other inner size", inputs, wide, expected=ShapeError)
    inputs = (shape, table, corpus.ordinary((3,)), _FLAT)
    yield Case("other default", inputs, wide, expected=ShapeError)


@cases.gradients(specs.RAGGED_TENSOR_TO_TENSOR, "values", "default_value")
def dense_points(corpus: Corpus) -> Iterator[Case]:
    for name, shape, values, partitions, kinds in (
        _DENSE[at] for at in (2, 4, 5, 6, 9, 14, 15, 16, 17)
    ):
        inputs = (np.array(shape, np.int32), corpus.ordinary(values), corpus.ordinary(()))
        yield Case(name, (*inputs, partitions), {"row_partition_types": kinds})
    inputs = (_numbers(4, 3, 2), corpus.ordinary((9, 2)), corpus.ordinary((2,)))
    yield Case("default of rank 1", (*inputs, _FLAT), {"row_partition_types": _SPLITS})
    inputs = (_numbers(4, 3, 2), corpus.ordinary((9, 2)), corpus.ordinary((1,)))
    yield Case("default of one", (*inputs, _FLAT), {"row_partition_types": _SPLITS})
