"""References for ragged tensors: nested lists, built and taken apart."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def gather(
    params_nested_splits: list[Array],
    params_dense_values: Array,
    indices: Array,
    *,
    output_ragged_rank: int | None = None,  # noqa: ARG001  # it follows
) -> tuple[Array, ...]:
    """Take rows of nested lists of the numbers of values."""
    nested: list[Any] = list(range(len(params_dense_values)))
    for splits in reversed(params_nested_splits):
        places = splits.tolist()
        nested = [nested[a:b] for a, b in pairwise(places)]
    picked: Any = nested[int(indices)] if not indices.ndim else _picked(nested, indices.tolist())
    depth = len(params_nested_splits) + indices.ndim - 1
    dtype = params_nested_splits[0].dtype
    items = []
    for _ in range(depth):
        lengths = [len(row) for row in picked]
        items.append(np.array(np.cumsum([0, *lengths]), dtype=dtype))
        picked = [number for row in picked for number in row]
    return (*items, params_dense_values[np.array(picked, dtype=np.intp)])


def _picked(nested: list[Any], indices: Any) -> Any:
    if isinstance(indices, list):
        return [_picked(nested, index) for index in indices]
    return nested[indices]


def ragged_range(starts: Array, limits: Array, deltas: Array) -> tuple[Array, Array]:
    """Count from each start to its limit, in exact integers or in wide floats."""
    rows = max(np.size(array) if np.ndim(array) else 1 for array in (starts, limits, deltas))
    if any(np.shape(array) == (0,) for array in (starts, limits, deltas)):
        rows = 0
    whole = starts.dtype.kind in "iu"
    flat_rows: list[Any] = []
    splits = [0]
    for row in range(rows):
        start, limit, delta = (
            (int if whole else np.longdouble)(np.broadcast_to(array, (rows,))[row])
            for array in (starts, limits, deltas)
        )
        step = 0
        while (start + step * delta < limit) if delta > 0 else (start + step * delta > limit):
            flat_rows.append(start + step * delta)
            step += 1
        splits.append(len(flat_rows))
    values = np.array(flat_rows, dtype=starts.dtype if whole else np.longdouble)
    return np.array(splits, dtype=np.int32), values


def to_tensor(
    shape: Array,
    values: Array,
    default_value: Array,
    row_partition_tensors: list[Array],
    *,
    row_partition_types: list[str],
) -> Array:
    """Put each value where its row numbers say, if the result has such a place."""
    kinds = [type_.upper() for type_ in row_partition_types]
    partitions = list(zip(kinds, row_partition_tensors, strict=True))
    if partitions[0][0] == "FIRST_DIM_SIZE":
        rows = int(partitions.pop(0)[1])
    else:
        rows = len(partitions[0][1]) - 1
    places: list[tuple[int, ...]] = [(row,) for row in range(rows)]
    longest = [rows]
    for kind, tensor in partitions:
        parents = (
            [row for row, count in enumerate(np.diff(tensor)) for _ in range(count)]
            if kind == "ROW_SPLITS"
            else tensor.tolist()
        )
        columns = [at - parents.index(row) for at, row in enumerate(parents)]
        longest.append(max(columns, default=-1) + 1)
        places = [(*places[row], at) for row, at in zip(parents, columns, strict=True)]
    natural = [*longest, *values.shape[1:]]
    requested = [-1] * len(natural) if not shape.ndim else shape.tolist()
    sizes = [own if item == -1 else item for item, own in zip(requested, natural, strict=True)]
    result = np.empty(sizes, values.dtype)
    result[...] = default_value
    for place, value in zip(places, values, strict=True):
        if all(at < size for at, size in zip(place, sizes, strict=False)):
            result[place] = value
    return result
