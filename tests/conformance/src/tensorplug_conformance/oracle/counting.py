"""References for sums by segment and counts: one segment, one number after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array, Reference


def segment_sum(x: Array, segment_ids: Array, *, num_segments: int) -> Reference:
    """For each segment the sum of the rows that a mask of its id picks."""
    rest = x.shape[segment_ids.ndim :]
    values = wide(x)
    out = np.zeros((num_segments, *rest), dtype=values.dtype)
    bound = np.zeros((num_segments, *rest), dtype=np.longdouble)
    inexact = kind_of(x.dtype) in "fc"
    present = {int(number) for number in np.unique(segment_ids)}
    for number in present & set(range(num_segments)):
        picked = values[segment_ids == number]
        out[number] = picked.sum(axis=0)
        if inexact:
            bound[number] = np.abs(picked).sum(axis=0) * levels(len(picked)) * epsilon(x)
    return Bounded(out, bound) if inexact else wrap(out, x.dtype)


def bincount(x: Array, weights: Array | None, *, size: int) -> Reference:
    """The sum of the weights of each number."""
    if weights is None:
        weights = np.ones(x.shape, dtype=np.int32)
    elif weights.shape != x.shape:
        weights = np.ones(x.shape, dtype=weights.dtype)
    return segment_sum(weights, x, num_segments=size)


def dense_bincount(
    x: Array, weights: Array | None, *, size: int, binary_output: bool = False
) -> Reference:
    """The same for each row; or whether the number is there."""
    dtype = np.dtype(np.int32) if weights is None else weights.dtype
    if binary_output:
        table = x.reshape(-1, x.shape[-1]).tolist()
        items = [[int(n in row) for n in range(size)] for row in table]
        return np.array(items, dtype=dtype).reshape(*x.shape[:-1], size)
    if x.ndim == 1:
        return bincount(x, weights, size=size)
    if weights is not None and weights.shape != x.shape:
        weights = np.ones(x.shape, dtype=dtype)
    counts = [
        bincount(row, None if weights is None else weights[at], size=size)
        for at, row in enumerate(x)
    ]
    if not counts:
        return np.zeros((0, size), dtype=dtype)
    bounded = [count for count in counts if isinstance(count, Bounded)]
    if not bounded:
        return np.stack([count for count in counts if isinstance(count, np.ndarray)])
    return Bounded(
        np.stack([part.value for part in bounded]), np.stack([part.bound for part in bounded])
    )
