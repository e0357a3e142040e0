"""Ragged tensors: rows of different lengths, as one array of values and row splits.

Row splits ``[0, 2, 2, 5]`` mean that row 0 has the values 0 and 1, row 1 has none, and row 2 has
the others. With nested splits, those of the outer dimension split the rows of the next one.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError
from tensorplug.host_functions.ascending import check_ascending

__all__ = ["gather", "ragged_range", "to_tensor"]

Array = np.ndarray[Any, Any]

_LARGEST: Final = 2**31 - 1  # splits are int32


def check_splits(splits: Array, size: int, what: str) -> Array:
    """Return row splits as NumPy's index integers.

    Raises:
        ArgumentError: they do not ascend from 0 or more to ``size``.

    """
    if not splits.size:
        raise ArgumentError(f"{what} are empty, but even the splits of no rows are [0]")
    check_ascending(splits, what)
    if splits[0] < 0:
        raise ArgumentError(f"{what} must not be negative, got {splits[0]}")
    if splits[-1] > size:
        raise ArgumentError(f"{what} end at {splits[-1]}, but there are {size} values to split")
    return splits.astype(np.intp)


def expanded(starts: Array, lengths: Array) -> Array:
    """Return the concatenation of ranges with these starts and lengths."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Array = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return numbers


# Gathering rows ----------------------------------------------------------------------------


def gather(
    params_nested_splits: list[Array],
    params_dense_values: Array,
    indices: Array,
) -> list[Array]:
    """Return the nested splits of the rows that ``indices`` pick, and their values."""
    checked = _check_nested(params_nested_splits, len(params_dense_values))
    kind = params_nested_splits[0].dtype
    rows = _pick(indices, len(checked[0]) - 1)
    partitions = [
        np.arange(prod(indices.shape[: axis + 1]) + 1) * indices.shape[axis + 1]
        for axis in range(indices.ndim - 1)
    ]
    for splits in checked:
        lengths = np.diff(splits)[rows]
        partitions.append(np.concatenate(([0], np.cumsum(lengths))))
        rows = expanded(splits[:-1][rows], lengths)
    kept = (
        partitions if indices.ndim else partitions[1:]
    )  # a single row has no outermost dimension
    return [*(_narrow(splits, kind) for splits in kept), params_dense_values[rows]]


def _check_nested(nested: list[Array], size: int) -> list[Array]:
    sizes = [len(splits) - 1 for splits in nested[1:]] + [size]
    return [
        check_splits(splits, rows, f"params_nested_splits[{at}]")
        for at, (splits, rows) in enumerate(zip(nested, sizes, strict=True))
    ]


def _pick(indices: Array, rows: int) -> Array:
    wrong = (indices < 0) | (indices >= rows)
    if wrong.any():
        at = np.unravel_index(int(np.argmax(wrong)), indices.shape)
        position = ", ".join(str(int(index)) for index in at)
        raise OutOfRangeError(f"indices[{position}] must be in [0, {rows}), got {indices[at]}")
    return indices.reshape(-1).astype(np.intp)


def _narrow(splits: Array, dtype: np.dtype[Any]) -> Array:
    if splits[-1] > np.iinfo(dtype).max:
        raise ArgumentError(f"the result has {splits[-1]} values, too many for splits of {dtype}")
    return splits.astype(dtype)


# Ranges ------------------------------------------------------------------------------------


def ragged_range(starts: Array, limits: Array, deltas: Array) -> tuple[Array, Array]:
    """Return splits and values of the rows ``start, start + delta, ...`` below each limit."""
    start, limit, delta = np.broadcast_arrays(
        *(np.atleast_1d(x) for x in (starts, limits, deltas))
    )
    if (delta == 0).any():
        raise ArgumentError(f"deltas must not be 0, but element {int(np.argmax(delta == 0))} is")
    if not all(np.isfinite(ends).all() for ends in (start, limit, delta)):
        raise ArgumentError("starts, limits and deltas must be finite")
    lengths = _measure_lengths(start, limit, delta)
    ends = np.cumsum(lengths)
    if len(ends) and ends[-1] > _LARGEST:
        raise ArgumentError(f"the ranges have {ends[-1]} values, more than {_LARGEST}")
    steps = expanded(np.zeros(len(ends), np.intp), lengths)
    wide = np.dtype(np.float64) if starts.dtype.kind == "f" else starts.dtype
    first, step = (np.repeat(x.astype(wide, copy=False), lengths) for x in (start, delta))
    values = first + steps.astype(wide) * step  # a running sum would accumulate errors
    return np.concatenate(([0], ends)).astype(np.int32), values.astype(starts.dtype)


def _measure_lengths(start: Array, limit: Array, delta: Array) -> Array:
    upward = delta > 0
    some = np.where(upward, limit > start, limit < start)
    if start.dtype.kind == "f":
        wide = [x.astype(np.float64) for x in (start, limit, delta)]
        exact = np.where(some, np.maximum(np.ceil((wide[1] - wide[0]) / wide[2]), 1), 0)
        if (exact > _LARGEST).any():
            at = int(np.argmax(exact > _LARGEST))
            raise ArgumentError(f"range {at} has {exact[at]} values, more than {_LARGEST}")
        return exact.astype(np.intp)
    # Unsigned differences modulo 2**64 are exact.
    low, high = np.where(upward, start, limit), np.where(upward, limit, start)
    reach = np.where(some, high.astype(np.uint64) - low.astype(np.uint64), np.uint64(0))
    step = delta.astype(np.uint64)
    stride: Any = np.where(upward, step, np.uint64(0) - step)
    whole = reach // stride + (reach % stride > 0)
    if (whole > _LARGEST).any():
        at = int(np.argmax(whole > _LARGEST))
        raise ArgumentError(f"range {at} has {whole[at]} values, more than {_LARGEST}")
    lengths: Array = whole.astype(np.intp)
    return lengths


# To a dense tensor -------------------------------------------------------------------------


def to_tensor(
    shape: Array,
    values: Array,
    default_value: Array,
    row_partition_tensors: list[Array],
    *,
    row_partition_types: tuple[str, ...],
) -> Array:
    """Return the rows as a dense array, cut to ``shape`` or padded with the default value."""
    count, partitions = _read_partitions(row_partition_tensors, row_partition_types)
    if [kind for kind, _ in partitions] == ["ROW_SPLITS"]:
        return _rows_side_by_side(shape, values, default_value, count, partitions[0][1])
    coordinates = [
        _find_coordinates(partition, at) for at, partition in enumerate(partitions, start=1)
    ]
    longest = [int(column.max(initial=-1)) + 1 for _, column in coordinates]
    sizes = _choose_sizes(shape, values, count, longest)
    depth = len(partitions) + 1
    rows = np.where(np.arange(count) < sizes[0], np.arange(count), -1)
    for (row, column), size, at in zip(coordinates, sizes[1:], range(1, depth), strict=False):
        if len(row) and row[-1] >= len(rows):
            raise ArgumentError(
                f"row_partition_tensors of ragged dimension {at} name row {row[-1]}, but the "
                f"dimension before has {len(rows)} rows"
            )
        before = rows[row]
        rows = np.where((before >= 0) & (column < size), before * size + column, -1)
    if len(rows) != len(values):
        raise ArgumentError(
            f"the row partitions describe {len(rows)} values, but values are {len(values)}"
        )
    inner = tuple(sizes[depth:])
    result = np.empty((prod(sizes[:depth]), *inner), values.dtype)
    result[...] = default_value
    kept = rows >= 0
    result[rows[kept]] = values[kept]
    return result.reshape(sizes)


def _rows_side_by_side(
    shape: Array, values: Array, default_value: Array, count: int, splits: Array
) -> Array:
    """Return the dense array for one vector of row splits, the usual case, more cheaply."""
    lengths = _measure_row_lengths(splits, "the ROW_SPLITS of ragged dimension 1")
    sizes = _choose_sizes(shape, values, count, [int(lengths.max(initial=0))])
    last = int(np.flatnonzero(lengths).max(initial=-1))  # the last row that has values
    if last >= count:
        raise ArgumentError(
            f"row_partition_tensors of ragged dimension 1 name row {last}, but the dimension "
            f"before has {count} rows"
        )
    if splits[-1] != len(values):
        raise ArgumentError(
            f"the row partitions describe {splits[-1]} values, but values are {len(values)}"
        )
    number = min(len(lengths), sizes[0])
    shown, width = lengths[:number], sizes[1]
    taken = values[: int(splits[number])]
    if (shown > width).any():
        taken = taken[expanded(np.zeros_like(shown), shown) < width]
    result = np.empty(sizes, values.dtype)
    if number == sizes[0] and (shown >= width).all():
        result[...] = taken.reshape(sizes)
        return result
    result[...] = default_value
    result[:number][np.arange(width) < shown[:, None]] = taken
    return result


def _read_partitions(
    tensors: list[Array], kinds: tuple[str, ...]
) -> tuple[int, list[tuple[str, Array]]]:
    """Return the number of outermost rows, and the partitions of the other dimensions."""
    paired = list(zip(kinds, tensors, strict=True))
    if kinds[0] == "FIRST_DIM_SIZE":
        count = int(tensors[0].reshape(-1)[0])
        if count < 0:
            raise ShapeError(f"the first dimension must not be negative, got {count}")
        return count, paired[1:]
    return len(tensors[0]) - 1, paired


def _find_coordinates(partition: tuple[str, Array], at: int) -> tuple[Array, Array]:
    """Return each value's row, and its number within that row."""
    kind, tensor = partition
    what = f"the {kind} of ragged dimension {at}"
    if kind == "ROW_SPLITS":
        lengths = _measure_row_lengths(tensor, what)
        return np.repeat(np.arange(len(lengths)), lengths), expanded(
            np.zeros_like(lengths), lengths
        )
    down = tensor[1:] < tensor[:-1]
    if down.any():
        position = int(np.argmax(down)) + 1
        raise ArgumentError(
            f"{what} must be ascending, but element {position} is {tensor[position]} after "
            f"{tensor[position - 1]}"
        )
    if tensor.size and tensor[0] < 0:
        raise ArgumentError(f"{what} must not be negative, got {tensor[0]}")
    rows = tensor.astype(np.intp)
    return rows, np.arange(len(rows)) - np.searchsorted(rows, rows)


def _measure_row_lengths(splits: Array, what: str) -> Array:
    checked = check_splits(splits, np.iinfo(np.intp).max, what)
    if checked[0]:
        raise ArgumentError(f"{what} must begin with 0, got {checked[0]}")
    return np.diff(checked)


def _choose_sizes(shape: Array, values: Array, count: int, longest: list[int]) -> list[int]:
    """Return the sizes of the result: those in ``shape``, else those of the longest rows."""
    sizes = [int(size) for size in shape] if shape.ndim else None
    if sizes is None:
        if int(shape) != -1:
            raise ShapeError(f"shape must be a list of sizes, or -1 for any, got {shape}")
        sizes = [-1] * (len(longest) + values.ndim)
    if any(size < -1 for size in sizes):
        raise ShapeError(f"shape {sizes} has a negative size other than -1")
    natural = [count, *longest, *values.shape[1:]]
    inner = len(longest) + 1
    for at in range(inner, len(sizes)):
        if sizes[at] not in (-1, natural[at]):
            raise ShapeError(
                f"shape {sizes} has size {sizes[at]} in dimension {at}, but the values have "
                f"{natural[at]}"
            )
    return [own if size == -1 else size for size, own in zip(sizes, natural, strict=True)]
