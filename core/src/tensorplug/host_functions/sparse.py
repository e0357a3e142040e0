"""Sparse tensors as lists of coordinates, and sums of selected rows.

Coordinates are rows of integers, one for each nonzero element.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError
from tensorplug.host_functions.ascending import check_ascending

__all__ = [
    "check_segments",
    "fill_empty_rows",
    "mean_of",
    "reshape",
    "segment_mean",
    "segment_sum",
    "sums_of",
    "widened",
]

Array = np.ndarray[Any, Any]

# How many rows are added sequentially. Longer sums are sums of such sums: an error of 3.5 eps per
# 3 bits of the length stays within eps * log2(length).
_RUN: Final = 8

_WIDE: Final = {"float16": "float64", "float32": "float64", "complex64": "complex128"}


def fill_empty_rows(
    indices: Array, values: Array, dense_shape: Array, default_value: Array
) -> tuple[Array, Array, Array, Array]:
    """Return coordinates and values in the order of rows, with an element added to each empty row.

    Also return which rows were empty, and the new place of each element.
    """
    count, rank = indices.shape
    rows = int(dense_shape[0])
    if rows < 0:
        raise ShapeError(f"dense_shape must not contain negative sizes, but begins with {rows}")
    row = _check_within(indices[:, 0], rows, "the first column of indices")
    present = np.bincount(row, minlength=rows)
    empty = present == 0
    filled = np.maximum(present, 1)
    ends = np.cumsum(filled)
    starts = ends - filled
    ascending = bool((row[1:] >= row[:-1]).all())
    order = np.arange(count) if ascending else np.argsort(row, kind="stable")
    ordered = row[order]
    # each element's number in its row: its place minus that of the row's first element
    within = np.arange(count) - (np.cumsum(present) - present)[ordered]
    positions = np.empty(count, np.intp)
    positions[order] = starts[ordered] + within
    total = int(ends[-1]) if rows else 0
    _check_fit(total - 1, indices.dtype)
    coordinates = np.zeros((total, rank), indices.dtype)
    coordinates[starts[empty], 0] = np.flatnonzero(empty)
    coordinates[positions] = indices
    result = np.full(total, default_value, values.dtype)
    result[positions] = values
    return coordinates, result, empty, positions.astype(indices.dtype)


def reshape(input_indices: Array, input_shape: Array, new_shape: Array) -> tuple[Array, Array]:
    """Return the elements' coordinates in a tensor of another shape, and that shape."""
    old = _read_sizes(input_shape, "input_shape")
    new = _complete([int(size) for size in new_shape], old)
    flat = np.zeros(len(input_indices), np.int64)
    for axis, size in enumerate(old):
        flat = flat * size + _check_within(
            input_indices[:, axis], size, f"column {axis} of indices"
        )
    coordinates: Array = np.empty((len(flat), len(new)), input_indices.dtype)
    for axis in reversed(range(len(new))):
        flat, column = np.divmod(flat, max(new[axis], 1))
        _check_fit(int(column.max(initial=0)), coordinates.dtype)
        coordinates[:, axis] = column
    return coordinates, np.array(new, dtype=new_shape.dtype)


def _check_fit(largest: int, dtype: np.dtype[Any]) -> None:
    if largest > np.iinfo(dtype.name).max:
        raise ArgumentError(
            f"the result has an index of {largest}, which does not fit into {dtype}"
        )


def _read_sizes(shape: Array, what: str) -> list[int]:
    sizes = [int(size) for size in shape]
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{what} must not contain negative sizes, got {sizes}")
    return sizes


def _complete(new: list[int], old: list[int]) -> list[int]:
    """Return ``new`` with its -1 replaced so that it has as many elements as ``old``."""
    if new.count(-1) > 1 or any(size < -1 for size in new):
        raise ShapeError(f"new_shape may contain one -1 but no other negative size, got {new}")
    total = prod(old)
    if -1 in new:
        known = prod(size for size in new if size != -1)
        if not known or total % known:
            raise ShapeError(
                f"input_shape {old} has {total} elements, but new_shape {new} cannot have as many"
            )
        new = [total // known if size == -1 else size for size in new]
    if prod(new) != total:
        raise ShapeError(
            f"input_shape {old} has {total} elements, but new_shape {new} has {prod(new)}"
        )
    return new


def _check_within(numbers: Array, size: int, what: str) -> Array:
    """Return indices as NumPy's index integers, after checking that they are in ``[0, size)``."""
    if numbers.size and (numbers.min() < 0 or numbers.max() >= size):
        at = int(np.argmax((numbers < 0) | (numbers >= size)))
        raise OutOfRangeError(f"{what}: element {at} must be in [0, {size}), got {numbers[at]}")
    return _to_index_dtype(numbers)


def _to_index_dtype(numbers: Array) -> Array:
    """Return non-negative integers in a dtype that NumPy accepts for indices."""
    return numbers.astype(np.intp) if numbers.dtype.kind == "u" else numbers


# Sums of rows ------------------------------------------------------------------------------


def check_segments(indices: Array, segment_ids: Array, rows: int) -> tuple[Array, Array, int]:
    """Return indices and ids as NumPy's index integers, and the number of segments.

    Raises:
        OutOfRangeError: an index is not in ``[0, rows)``.
        ArgumentError: the ids are negative or descend.

    """
    picked = _check_within(indices, rows, "indices")
    if not segment_ids.size:
        return picked, segment_ids.astype(np.intp), 0
    if segment_ids[0] < 0:
        raise ArgumentError(f"segment_ids must not be negative, got {segment_ids[0]}")
    check_ascending(segment_ids, "segment_ids")
    return picked, _to_index_dtype(segment_ids), int(segment_ids[-1]) + 1


def segment_sum(data: Array, indices: Array, segment_ids: Array) -> Array:
    """Return for each segment the sum of the rows of ``data`` with its indices."""
    picked, ids, count = check_segments(indices, segment_ids, len(data))
    rows = data.take(picked, axis=0)
    return sums_of(rows, ids, count).astype(data.dtype, copy=False)


def segment_mean(data: Array, indices: Array, segment_ids: Array) -> Array:
    """Return the means instead; those of integers are truncated."""
    picked, ids, count = check_segments(indices, segment_ids, len(data))
    rows = data.take(picked, axis=0).astype(widened(data.dtype), copy=False)
    sums = sums_of(rows, ids, count)
    return mean_of(sums, ids).astype(data.dtype, copy=False)


def widened(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which rows are added for a mean, so that the sum does not overflow."""
    if dtype.kind in "iu":
        return np.dtype(np.int64 if dtype.kind == "i" else np.uint64)
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def mean_of(sums: Array, ids: Array) -> Array:
    """Return the sums divided by their numbers of summands; 0 for empty segments."""
    counts = np.maximum(np.bincount(ids, minlength=len(sums)), 1)
    column = counts.reshape(-1, *(1,) * (sums.ndim - 1))
    if sums.dtype.kind in "iu":
        column = column.astype(sums.dtype)
        down = np.floor_divide(sums, column)
        return np.asarray(down + ((sums < 0) & (down * column != sums)))
    return np.asarray(sums / column.astype(sums.real.dtype))


def sums_of(rows: Array, ids: Array, count: int) -> Array:
    """Return the sum of the ``rows`` of each id; ids are ascending.

    Dtypes narrower than float64 are added in float64, and callers round the result.
    """
    wide = _WIDE.get(rows.dtype.name)
    if wide is not None:
        rows = rows.astype(wide)
    result = np.zeros((count, *rows.shape[1:]), rows.dtype)
    while len(ids):
        fresh = np.concatenate(([True], ids[1:] != ids[:-1]))
        starts = np.flatnonzero(fresh)
        lengths = np.diff(starts, append=len(ids))
        if wide is not None or rows.dtype.kind in "iu" or lengths.max() <= _RUN:
            result[ids[starts]] = np.add.reduceat(rows, starts, axis=0)
            break
        pieces = -(-lengths // _RUN)
        first = np.cumsum(pieces) - pieces
        number = np.arange(int(pieces.sum())) - np.repeat(first, pieces)
        starts = np.repeat(starts, pieces) + number * _RUN
        rows, ids = np.add.reduceat(rows, starts, axis=0), ids[starts]
    return result
