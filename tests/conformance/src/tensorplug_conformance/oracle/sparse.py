"""References for sparse tensors: one element after the other, in dictionaries of rows."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array, Reference


def fill_empty_rows(
    indices: Array, values: Array, dense_shape: Array, default_value: Array
) -> tuple[Array, Array, Array, Array]:
    """Collect the elements of each row, and put one into empty rows."""
    rows: list[list[int]] = [[] for _ in range(int(dense_shape[0]))]
    for number, row in enumerate(indices[:, 0].tolist()):
        rows[row].append(number)
    rank = indices.shape[1]
    places: list[list[int]] = []
    items = []
    back = [0] * len(indices)
    for row, numbers in enumerate(rows):
        for number in numbers:
            back[number] = len(places)
            places.append(indices[number].tolist())
            items.append(values[number])
        if not numbers:
            places.append([row] + [0] * (rank - 1))
            items.append(default_value[()])
    result = np.empty(len(items), np.result_type(values, default_value))
    for at, item in enumerate(items):
        result[at] = item
    return (
        np.array(places, dtype=indices.dtype).reshape(-1, rank),
        result,
        np.array([not numbers for numbers in rows], dtype=bool),
        np.array(back, dtype=indices.dtype),
    )


def reshape(input_indices: Array, input_shape: Array, new_shape: Array) -> tuple[Array, Array]:
    """Map the row-major index of each element."""
    old, new = tuple(input_shape.tolist()), new_shape.tolist()
    if -1 in new:
        new[new.index(-1)] = prod(old) // prod(size for size in new if size != -1)
    items = [
        np.unravel_index(np.ravel_multi_index(tuple(place), old) if old else 0, tuple(new))
        for place in input_indices.tolist()
    ]
    shape = (len(items), len(new))
    table = np.array(
        [[int(number) for number in place] for place in items], dtype=input_indices.dtype
    )
    return table.reshape(shape), np.array(new, dtype=new_shape.dtype)


def segment_sum(data: Array, indices: Array, segment_ids: Array) -> Reference:
    """For each segment the sum of its rows."""
    return _reduced(data, indices, segment_ids, mean=False)


def segment_mean(data: Array, indices: Array, segment_ids: Array) -> Reference:
    """For each segment the mean of its rows; integers are truncated."""
    return _reduced(data, indices, segment_ids, mean=True)


def _reduced(data: Array, indices: Array, segment_ids: Array, *, mean: bool) -> Reference:
    values = wide(data)
    count = int(segment_ids[-1]) + 1 if len(segment_ids) else 0
    out = np.zeros((count, *data.shape[1:]), dtype=values.dtype)
    bound = np.zeros(out.shape, dtype=np.longdouble)
    inexact = kind_of(data.dtype) in "fc"
    for number in {int(segment_name) for segment_name in segment_ids}:
        picked = values[indices[segment_ids == number]]
        terms = len(picked)
        out[number] = picked.sum(axis=0)
        if inexact:
            bound[number] = np.abs(picked).sum(axis=0) * levels(terms) * epsilon(data)
        if mean:
            out[number] = out[number] / terms if inexact else _cut(out[number], terms)
            bound[number] /= terms
    return Bounded(out, bound) if inexact else wrap(out, data.dtype)


def _cut(total: Array, terms: int) -> Array:
    flat = [abs(int(number)) // terms * (1 if number >= 0 else -1) for number in np.ravel(total)]
    return np.array(flat, dtype=object).reshape(np.shape(total))
